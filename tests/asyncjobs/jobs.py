"""Coroutines that wait, fail, block, ask the database, and say where they ran."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection
from django.db.backends.signals import connection_created
from django.utils import translation

from django_cogworker import Job, current_job
from django_cogworker.exceptions import NoJobContext
from django_cogworker.signals import job_finished, job_started
from tests.project import journal

mark: ContextVar[str] = ContextVar("mark", default="none")


def thread() -> str:
    return threading.current_thread().name


async def file(name: str) -> None:
    """Wait until the test has made the file `name`."""
    while not (journal.directory() / name).exists():
        await asyncio.sleep(0.01)


class Nap(Job, queue="hooks"):
    async def perform(self, line: str, seconds: float = 1.0) -> None:
        await asyncio.sleep(seconds)
        journal.write(line)


class Where(Job, queue="hooks"):
    async def perform(self, name: str) -> None:
        await asyncio.sleep(0)
        journal.write(f"{name} in {thread()} jid={current_job().jid == self.jid}")


class SyncWhere(Job, queue="hooks"):
    def perform(self, name: str) -> None:
        journal.write(f"{name} in {thread()}")


class SyncWaits(Job, queue="hooks"):
    def perform(self, name: str) -> None:
        journal.write(f"started {name}")
        journal.wait_for_file(name)
        journal.write(f"finished {name}")


class PushesCoroutine(Job):
    """Waits for a file and pushes a coroutine, which pushes one of these, so many times in all."""

    def perform(self, name: str, more: int) -> None:
        journal.write(f"started {name} {more}")
        journal.wait_for_file(f"{name} {more}")
        journal.write(f"finished {name} {more}")
        if more:
            PushesSync.perform_async(name, more - 1)


class PushesSync(Job, queue="hooks"):
    async def perform(self, name: str, more: int) -> None:
        journal.write(f"started {name} {more}")
        await file(f"{name} {more}")
        journal.write(f"finished {name} {more}")
        if more:
            await PushesCoroutine.aperform_async(name, more - 1)


class Fails(Job, queue="hooks", retry=1):
    """Fails `times` times with the error named."""

    @classmethod
    def retry_in(cls) -> float:
        return 0.05

    @classmethod
    def retries_exhausted(cls, payload: dict[str, Any]) -> None:
        # A query: it would be refused on a loop.
        journal.write(f"exhausted {payload['args'][0]} users={User.objects.count()}")

    async def perform(self, name: str, kind: str, times: int) -> None:
        await asyncio.sleep(0)
        if self.attempt <= times:
            journal.write(f"failed {name} {self.attempt}")
            error = {
                "value": ValueError,
                "exit": SystemExit,
                "cancelled": asyncio.CancelledError,
                "stop": StopIteration,
            }[kind]
            if kind == "exit":
                await asyncio.gather(self._leave(), asyncio.sleep(0))
            raise error("oh")
        journal.write(f"good {name} {self.attempt}")

    async def _leave(self) -> None:
        raise SystemExit(3)


class Waits(Job, queue="hooks"):
    """Waits for a file; says how it was ended."""

    async def perform(self, name: str) -> None:
        journal.write(f"started {name}")
        try:
            await file(name)
        except asyncio.CancelledError:
            journal.write(f"cancelled {name} stopping={self.stopping}")
            raise
        journal.write(f"finished {name}")


class WaitsOnce(Waits, at_most_once=True):
    @classmethod
    def retries_exhausted(cls, payload: dict[str, Any]) -> None:
        journal.write(f"exhausted {payload['args'][0]}")


class EndsWhenAsked(Job, queue="hooks"):
    async def perform(self, name: str) -> None:
        journal.write(f"started {name}")
        while not self.stopping:
            await asyncio.sleep(0.01)
        journal.write(f"stopping {name}")


class Creates(Job, queue="hooks"):
    """Uses the asynchronous side of the models."""

    async def perform(self, name: str) -> None:
        await User.objects.acreate(username=name)
        number = await User.objects.filter(username__startswith="a").acount()
        journal.write(f"created {name} {number > 0}")


_created: list[str] = []
connection_created.connect(lambda **named: _created.append("one"), weak=False)


class Connection(Job, queue="hooks"):
    """Says how many database connections were made so far; `spoil` makes it unusable for the next one."""

    async def perform(self, name: str, spoil: bool = False) -> None:
        await User.objects.acount()

        def spoil_it() -> None:
            connection.close_at = time.monotonic() - 1

        if spoil:
            await sync_to_async(spoil_it)()
        journal.write(f"{name} {len(_created)}")


class Leaks(Job, queue="hooks"):
    """Says what it finds, and leaves a language and a context variable behind."""

    async def perform(self, name: str) -> None:
        journal.write(f"{name} {mark.get()} {translation.get_language()}")
        mark.set(name)
        translation.activate("de")
        await asyncio.sleep(0.01)
        journal.write(f"{name} has {mark.get()}")


class LeaksAndLingers(Leaks):
    """One receiver says whether it sees a job before this one has begun; another waits for a file when its end is
    known already.
    """


class Blocks(Job, queue="hooks"):
    async def perform(self, name: str) -> None:
        journal.write(f"blocking {name}")
        journal.wait_for_file(name)  # synchronous: the whole loop waits
        journal.write(f"unblocked {name}")


# -- server middleware

Next = Callable[[Any, dict[str, Any]], Any]


def around(next_one: Next) -> Next:
    """Sets a context variable, and says when the job began and ended, and how."""

    def middleware(job: Any, payload: dict[str, Any]) -> Any:
        name = payload["args"][0]
        mark.set(f"by the middleware for {name}")
        journal.write(f"before {name} {'loop-helper' in thread()}")
        try:
            result = next_one(job, payload)
        except BaseException as error:
            journal.write(f"raised {name} {type(error).__name__}")
            raise
        journal.write(f"after {name}")
        return result

    return middleware


# -- receivers


def noting(sender: Any, **named: Any) -> None:
    """Asks the database, which is refused on a loop."""
    what = "finished" if "duration" in named else "started"
    journal.write(f"signal {what} users={User.objects.count()}")


job_started.connect(noting, sender=Where)
job_finished.connect(noting, sender=Where)


def looking(payload: dict[str, Any], **named: Any) -> None:
    try:
        journal.write(f"{payload['args'][0]} begins within {current_job().payload['args'][0]}")
    except NoJobContext:
        journal.write(f"{payload['args'][0]} begins within none")


def lingering(payload: dict[str, Any], **named: Any) -> None:
    name = payload["args"][0]
    journal.write(f"lingers {name}")
    journal.wait_for_file(f"end {name}")


job_started.connect(looking, sender=LeaksAndLingers)
job_finished.connect(lingering, sender=LeaksAndLingers)
