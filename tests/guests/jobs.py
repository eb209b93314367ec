"""Jobs that are given what this app has, and write down what arrived."""

from __future__ import annotations

from typing import Any

from django.db.models import Model

from django_cogworker import Job
from tests.project import journal


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
