"""Jobs that leave traces in the test's journal, and misbehave as told."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any

from django_cogworker import Job, job
from tests.project import journal


class Append(Job):
    """Write one line."""

    def perform(self, line: str) -> None:
        journal.write(line)


class AppendLater(Job, queue="low"):
    """Write one line, from another queue."""

    def perform(self, line: str) -> None:
        journal.write(line)


class AppendAsync(Job):
    """A coroutine as a job."""

    async def perform(self, line: str) -> None:
        await asyncio.sleep(0)
        journal.write(line)


@job(queue="default")
def append_line(line: str) -> None:
    """A function as a job."""
    journal.write(line)


class Echo(Job):
    """Write down what arrived: the arguments as they are in Python, attempt and jid."""

    def perform(self, *args: Any, **kwargs: Any) -> None:
        journal.write(f"{args!r} {kwargs!r} attempt={self.attempt} jid={self.jid}")


class FailTimes(Job):
    """Fail `times` times, a moment apart, then write `name`."""

    @classmethod
    def retry_in(cls, count: int, error: BaseException, payload: dict[str, Any]) -> float:
        return 0.05

    def perform(self, name: str, times: int) -> None:
        strike = journal.strike(name)
        if strike <= times:
            journal.write(f"failed {name} {strike}")
            raise ValueError(f"{name} fails for the {strike}. time")
        journal.write(name)


class FailOnce(Job, retry=False):
    """Fail, and have no retry: it dies at the first failure."""

    def perform(self, name: str) -> None:
        journal.write(f"failed {name}")
        raise ValueError(f"{name} fails")


class Wait(Job):
    """Say that it began, wait for the file `name`, say that it ended."""

    def perform(self, name: str) -> None:
        journal.write(f"started {name}")
        journal.wait_for_file(name)
        journal.write(f"finished {name}")


class WaitUntilStopping(Job):
    """Run until the worker wants to stop."""

    def perform(self, name: str) -> None:
        journal.write(f"started {name}")
        deadline = time.monotonic() + 60
        while not self.stopping and time.monotonic() < deadline:
            time.sleep(0.005)
        journal.write(f"stopping {name}")


class Spin(Job):
    """Use the processor for `seconds`, as a job that never gives way does."""

    def perform(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pass


class KillWorker(Job):
    """Kill the worker that runs it, `times` times; after that just write `name`."""

    def perform(self, name: str, times: int = 1) -> None:
        if journal.strike(name) <= times:
            journal.write(f"killing {name}")
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(10)
        journal.write(name)


class ExitWorker(Job):
    """Leave through `os._exit`, past every handler."""

    def perform(self, name: str, code: int = 1) -> None:
        if journal.strike(name) == 1:
            journal.write(f"exiting {name}")
            os._exit(code)
        journal.write(name)


class RaiseOdd(Job, retry=False):
    """Raise what is not an `Exception`, or one that is odd in another way."""

    def perform(self, kind: str) -> None:
        journal.write(f"raising {kind}")
        if kind == "SystemExit":
            raise SystemExit(3)
        if kind == "KeyboardInterrupt":
            raise KeyboardInterrupt
        if kind == "GeneratorExit":
            raise GeneratorExit
        if kind == "CancelledError":
            raise asyncio.CancelledError
        if kind == "ExceptionGroup":
            raise ExceptionGroup("two", [ValueError("one"), TypeError("other")])
        if kind == "BaseExceptionGroup":
            raise BaseExceptionGroup("two", [SystemExit(1), ValueError("other")])
        raise AssertionError(f"no such kind: {kind}")


class Slot(Job, retry=2, tags=["slots"]):
    """Write down which slot it is for, if any, and its jid."""

    def perform(self) -> None:
        journal.write(f"slot {self.payload.get('slot')} {self.jid}")
