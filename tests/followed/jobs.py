"""Jobs that are tracked: what becomes of them can be asked by jid."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from django_cogworker import Job
from tests.project import journal


class Followed(Job, track=True):
    """A tracked job that fails `times` times and reports what it does."""

    @classmethod
    def retry_in(cls, count: int, error: BaseException, payload: dict[str, Any]) -> float:
        return 0.05

    def perform(self, name: str, times: int = 0) -> None:
        self.at(50, "half")
        self.store(name=name, state="mine")
        if journal.strike(name) <= times:
            raise ValueError(f"{name} fails")
        journal.write(name)


class FollowedWait(Job, track=True):
    """A tracked job that says that it began and waits for the file `name`, looking at neither signal."""

    def perform(self, name: str) -> None:
        journal.write(f"started {name}")
        journal.wait_for_file(name)
        journal.write(f"finished {name}")


class Answer(Job, result_ttl=600):
    """Give back what it got, or fail without retry."""

    @classmethod
    def retry_in(cls, count: int, error: BaseException, payload: dict[str, Any]) -> float:
        return 0.05

    def perform(self, value: Any, fails: int = 0) -> Any:
        if fails and journal.strike(str(value)) <= fails:
            raise ValueError(f"{value} fails")
        return value


class Unkept(Job, result_ttl=600):
    """Give back what cannot travel."""

    def perform(self) -> object:
        return object()


class ReportUntilCancelled(Job):
    """Report progress until that raises."""

    def perform(self, name: str) -> None:
        journal.write(f"started {name}")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                self.at(10, "on the way")
            except BaseException as error:
                journal.write(f"{name} {type(error).__name__} {self.cancelled}")
                raise
            time.sleep(0.005)


class ClaimCancelled(Job, retry=False):
    """Raise our error although nobody cancelled it."""

    def perform(self, name: str) -> None:
        from django_cogworker.exceptions import JobCancelled

        journal.write(f"claiming {name}")
        raise JobCancelled("it says")


class ForeverInPython(Job, track=True, retry=3):
    """Looks at nothing; tidies up when it is interrupted."""

    def perform(self, name: str) -> None:
        journal.write(f"started {name}")
        try:
            while True:
                sum(range(100))
        finally:
            journal.write(f"tidied {name}")


class ForeverAwaiting(Job, track=True, retry=3):
    """The same as a coroutine."""

    async def perform(self, name: str) -> None:
        journal.write(f"started {name}")
        try:
            await asyncio.sleep(600)
        finally:
            journal.write(f"tidied {name}")


class DeafInC(Job, track=True, retry=False):
    """One call of C code that nothing interrupts."""

    def perform(self, name: str) -> None:
        journal.write(f"started {name}")
        time.sleep(120)
