"""Jobs that ask the database, and write down how that went."""

from __future__ import annotations

import os
import time
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection

from django_cogworker import Job
from tests.project import journal


def backend(seconds: float = 0.0) -> int:
    """The process of the server that answers this connection, after so many seconds there."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_sleep(%s)", [seconds])
        cursor.execute("select pg_backend_pid()")
        return int(cursor.fetchone()[0])


class Ask(Job):
    """Ask twice. Writes `done NUMBER`, or `failed NUMBER WHEN-IT-BEGAN ERROR`."""

    @classmethod
    def retry_in(cls, count: int, error: BaseException, payload: dict[str, Any]) -> float:
        return 0.3

    def perform(self, number: int, seconds: float = 0.0) -> None:
        begun = time.monotonic()
        try:
            backend(seconds)
        except Exception as error:
            text = " ".join(str(error).split())
            journal.write(f"failed {number} {begun} {type(error).__name__}: {text}")
            raise
        journal.write(f"done {number}")


class Tell(Job):
    """Write which process runs it, and which process of the server answers."""

    def perform(self, name: str) -> None:
        journal.write(f"{name} {os.getpid()} {backend(0.01)}")


class TellAsync(Job, queue="web"):
    """The same from the event loop."""

    async def perform(self, name: str) -> None:
        answered = await sync_to_async(backend)(0.01)
        journal.write(f"{name} {os.getpid()} {answered}")


class Queries(Job):
    """Write how many queries stand in the log of `DEBUG` at its start, and make some."""

    def perform(self) -> None:
        before = len(connection.queries)
        for _ in range(3):
            backend()
        journal.write(f"{before} {len(connection.queries)}")
