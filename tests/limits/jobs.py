"""Jobs that are too slow in many ways."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from django.db import connection

from django_cogworker import Job
from tests.project import journal


def _loop_for(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(200))


class Loop(Job, timeout=0.5, retry=3):
    """Python code without an end."""

    def perform(self, name: str) -> None:
        journal.write(f"started {name} {threading.get_ident()}")
        begun = time.monotonic()
        try:
            _loop_for(60)
        finally:
            journal.write(f"after {name} {time.monotonic() - begun:.3f}")


class Swallow(Job, timeout=0.3, retry=3):
    """Swallows so many interruptions, then returns."""

    def perform(self, name: str, times: int) -> None:
        for each in range(times):
            try:
                _loop_for(60)
            except Exception:
                journal.write(f"swallowed {name} {each}")


class SleepInC(Job, retry=3):
    """One call of C code that no exception reaches."""

    def perform(self, name: str, seconds: float) -> None:
        journal.write(f"started {name}")
        time.sleep(seconds)
        journal.write(f"slept {name}")


class Coroutine(Job, timeout=0.5, retry=3):
    """Waits without an end; cleans up."""

    async def perform(self, name: str) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            journal.write(f"cancelled {name}")
            raise
        finally:
            await asyncio.sleep(0)
            journal.write(f"cleaned {name}")


class Coffee(Job, timeout=0.02, retry=3):
    """Takes about as long as it may."""

    def perform(self, number: int, seconds: float) -> None:
        _loop_for(seconds)
        journal.write(f"drunk {number}")


class Clean(Job):
    """Python code that an interruption meant for another job would hit."""

    def perform(self, number: int) -> None:
        _loop_for(0.005)
        journal.write(f"clean {number}")


class Query(Job, retry=3):
    """Uses the database; with `forever`, until it is interrupted."""

    def perform(self, name: str, forever: bool) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            journal.write(f"{name} {threading.get_ident()} {id(connection.connection)}")
            if forever:
                _loop_for(60)


class Discarded(Job, timeout=0.3, retry=3):
    """A hook that answers for each failure at once."""

    @classmethod
    def retry_in(cls, count: int, error: BaseException, payload: dict[str, Any]) -> float:
        journal.write(f"asked {type(error).__name__} {count}")
        return 0.05

    def perform(self, name: str) -> None:
        journal.write(f"attempt {self.attempt}")
        _loop_for(60)


def swallowing(next_call: Any) -> Any:
    """A server middleware that makes a success of everything."""

    def swallow(job: Any, payload: dict[str, Any]) -> Any:
        try:
            return next_call(job, payload)
        except Exception as error:
            journal.write(f"middleware {type(error).__name__}")
            return None

    return swallow
