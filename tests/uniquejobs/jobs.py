"""Unique jobs of all kinds. They write to the test's journal."""

from __future__ import annotations

import time
from typing import Any

from django_cogworker import DISCARD, Job
from tests.project import journal


class Executed(Job, unique="until_executed"):
    def perform(self, name: str, mark: str = "") -> None:
        journal.write(f"{name}{mark}")


class Unfollowed(Job, unique="until_executed", track=False):
    def perform(self, name: str) -> None:
        journal.write(name)


class Waiting(Job, unique="until_executed", unique_ttl=600.0):
    """Say that it began, wait for the file `name`, say that it ended."""

    def perform(self, name: str) -> None:
        journal.write(f"started {name}")
        journal.wait_for_file(name)
        journal.write(f"finished {name}")


class Executing(Job, unique="until_executing"):
    def perform(self, name: str) -> None:
        journal.write(f"started {name}")
        journal.wait_for_file(name)
        journal.write(f"finished {name}")


class Alone(Job, unique="while_executing", unique_on=["name"]):
    def perform(self, name: str, mark: str = "") -> None:
        journal.write(f"started {name}{mark}")
        journal.wait_for_file(name + mark)
        journal.write(f"finished {name}{mark}")


class Brief(Job, unique="while_executing", unique_on=["name"]):
    """Take ten milliseconds; number 0 waits for the file `0` besides."""

    def perform(self, name: str, number: int) -> None:
        journal.write(f"started {number}")
        if number == 0:
            journal.wait_for_file("0")
        time.sleep(0.01)
        journal.write(f"finished {number}")


class Latest(Job, unique="until_executed", unique_on=["name"], on_conflict="replace"):
    def perform(self, name: str, mark: str) -> None:
        journal.write(f"started {name} {mark}")
        journal.wait_for_file(f"{name}{mark}")
        journal.write(f"finished {name} {mark}")


class Fails(Job, unique="until_executed"):
    """Fail as told: `retry` in 10,000 seconds, `soon`, `discard`, or for good."""

    @classmethod
    def retry_in(cls, count: int, error: BaseException, payload: dict[str, Any]) -> Any:
        how = payload["args"][0]
        return {"retry": 10_000, "soon": 0.05, "discard": DISCARD}.get(how)

    def perform(self, how: str) -> None:
        strike = journal.strike(how)
        journal.write(f"{how} {strike}")
        if how != "soon" or strike == 1:
            raise ValueError(how)


class KillsOnce(Job, unique="until_executed"):
    """Say that it runs, and wait for the file the first time."""

    def perform(self, name: str) -> None:
        strike = journal.strike(name)
        journal.write(f"{name} {strike}")
        if strike == 1:
            journal.wait_for_file(name)


class KillsAlone(Job, unique="while_executing"):
    def perform(self, name: str) -> None:
        strike = journal.strike(name)
        journal.write(f"{name} {strike}")
        if strike == 1:
            journal.wait_for_file(name)


def spoiling(perform: Any) -> Any:
    """A server middleware: puts into the payload what JSON cannot hold, and fails."""

    def spoil(job: Any, payload: dict[str, Any]) -> Any:
        payload["junk"] = object()
        raise ValueError("spoilt")

    return spoil
