"""Jobs that take their worker along, in all the ways that happen, and some that see it come back."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import time
from typing import Any

from django_cogworker import Job
from tests.project import journal


def spend_time_beyond_a_limit() -> None:
    """The kernel sends SIGKILL at the hard limit, as it does when memory runs out."""
    used = int(time.process_time()) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (used, used))
    while True:
        pass


def use_memory_without_end() -> None:
    kept = []
    while True:
        kept.append(b"x" * 2**20)


WAYS = {
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "abort": os.abort,
    "fatal error": lambda: ctypes.pythonapi.Py_FatalError(b"as an extension module does"),
    "segfault": lambda: ctypes.string_at(0),
    "exit": lambda: os._exit(3),
    "good exit": lambda: os._exit(0),
    "limit": spend_time_beyond_a_limit,
    "memory": use_memory_without_end,
}


class Kills(Job):
    """Kills its worker each time it runs."""

    def perform(self, name: str, way: str) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        journal.write(f"killing {name}")
        WAYS[way]()
        time.sleep(10)


class KillsInCompany(Job):
    """The first time when the file `name` is there; then each time after a moment."""

    def perform(self, name: str) -> None:
        if journal.strike(name) == 1:
            journal.write(f"waiting {name}")
            journal.wait_for_file(name)
        else:
            time.sleep(0.2)
        journal.write(f"killing {name}")
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(10)


class FailsLate(Job):
    """Its first run fails when told to, its second one succeeds when told to."""

    @classmethod
    def retries_exhausted(cls, payload: dict[str, Any]) -> None:
        journal.write(f"exhausted {payload['args'][0]}")

    def perform(self, name: str) -> None:
        run = journal.strike(name)
        journal.write(f"started {name} {run}")
        journal.wait_for_file("fail" if run == 1 else "succeed")
        if run == 1:
            journal.write(f"failing {name} {run}")
            raise ValueError("late")
        journal.write(f"finished {name} {run}")


class WaitLong(Job):
    """Wait through an outage for the file `name`."""

    def perform(self, name: str) -> None:
        journal.write(f"started {name}")
        journal.wait_for_file(name, timeout=300)
        journal.write(f"finished {name}")
