"""The jobs of a trial. Each run writes its start and its end to the journal, which no fault touches."""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django_cogworker import Job
from tests.project import journal


class Planned(Exception):
    """The failure that a job was told to have."""


@contextmanager
def written_down(job: Job, name: str) -> Iterator[None]:
    """A line at the start, a line at the end. After `kill -9` the kernel still has them."""
    run, pid = secrets.token_hex(6), os.getpid()
    journal.write(f"start {time.time():.6f} {run} {name} {pid} {job.attempt} {job.jid}")
    try:
        yield
    except Planned:
        journal.write(f"end {time.time():.6f} {run} failed")
        raise
    journal.write(f"end {time.time():.6f} {run} ok")


class Work(Job, retry=5):
    """Takes some time, after it has failed as often as it was told."""

    @classmethod
    def retry_in(cls, count: int) -> float:
        return 0.3 + count

    def perform(self, name: str, seconds: float, failures: int = 0) -> None:
        with written_down(self, name):
            time.sleep(seconds)
            if self.attempt <= failures:
                raise Planned(name)


class Doomed(Work, retry=False):
    """Fails, and has no retry."""


class Shot(Work, retry=False, at_most_once=True):
    """May never be started a second time."""


class Killer(Job):
    """Takes its worker along, always."""

    def perform(self, name: str, how: str) -> None:
        with written_down(self, name):
            if how == "exit":
                os._exit(7)
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
