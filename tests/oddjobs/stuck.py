"""Code of users that makes a worker's own loops stand still. The death handler makes a worker import it."""

from __future__ import annotations

import ctypes
from typing import Any

from django_cogworker import Job
from tests.project import journal


def blocking_handler(payload: dict[str, Any], error: BaseException) -> None:
    """A death handler that does not come back before it is released; recovery calls it."""
    journal.write("handler blocks")
    journal.wait_for_file("handler", timeout=120)
    journal.write("handler ends")


class HoldTheInterpreter(Job):
    """C code that lets no other thread run, as a regular expression may."""

    def perform(self, name: str, seconds: int) -> None:
        journal.write(f"holding {name}")
        if journal.strike(name) == 1:
            ctypes.PyDLL(None).sleep(seconds)
        journal.write(f"finished {name}")
