"""Jobs that are given what this app has, and write down what arrived."""

from __future__ import annotations

import logging
import os
import signal
import time
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import Model
from django.utils import timezone, translation

from django_cogworker import Job
from tests.guests.context import request_id
from tests.project import journal

logger = logging.getLogger("guests")


class Tell(Job):
    """Write down the arguments, models as their label and primary key."""

    def perform(self, *args: Any, **kwargs: Any) -> None:
        journal.write(" ".join([*map(told, args), *(f"{n}={told(v)}" for n, v in kwargs.items())]))


class TellAsync(Job, queue="hooks"):
    """The same as a coroutine."""

    async def perform(self, *args: Any) -> None:
        journal.write(" ".join(map(told, args)))


def told(value: Any) -> str:
    if isinstance(value, Model):
        return f"{type(value).__qualname__}:{value}"
    return repr(value)


def surroundings() -> str:
    return f"{translation.get_language()} {timezone.get_current_timezone()} {request_id.get(None)}"


class Surrounded(Job):
    """Write down what surrounds it; fail `times` times, and leave everything changed."""

    @classmethod
    def retry_in(cls, count: int, error: BaseException, payload: dict[str, Any]) -> float:
        return 0.05

    def perform(self, name: str, times: int = 0) -> None:
        journal.write(f"{name} {self.attempt}: {surroundings()}")
        logger.info("%s was here", name)
        translation.activate("fr")
        timezone.activate("Asia/Tokyo")
        request_id.set("left behind")
        if self.attempt <= times:
            raise ValueError(name)


class Dies(Job):
    """Write down what surrounds it, and kill its worker the first time."""

    def perform(self, name: str) -> None:
        journal.write(f"{name}: {surroundings()}")
        if journal.strike(name) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(10)


class SurroundedAsync(Job, queue="hooks"):
    async def perform(self, name: str) -> None:
        journal.write(f"{name} {self.attempt}: {surroundings()}")
        logger.info("%s was here", name)
        request_id.set("left behind")
        await sync_to_async(journal.write)(f"{name} in a thread: {surroundings()}")


class SaysByDjango(Job):
    """Logs as parts of Django do."""

    def perform(self) -> None:
        logging.getLogger("django.of.tests").warning("said by Django")
