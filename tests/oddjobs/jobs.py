"""Jobs that fail in every way, and hooks that answer anything. What happened goes to the journal."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone, translation

from django_cogworker import DISCARD, KILL, Job
from django_cogworker.signals import job_died, job_failed, job_finished, job_started
from tests.project import journal


class Odd(Exception):
    """The error of these jobs."""


class Unprintable(Exception):
    """Its message cannot be had."""

    def __str__(self) -> str:
        raise SystemExit("no message")


def hook_line(what: str, payload: dict[str, Any], error: BaseException) -> None:
    journal.write(
        f"{what} {payload['args'][0]} {type(error).__name__} count={payload.get('retry_count')}"
    )


class Fails(Job):
    """Fails; `message` is the error's text."""

    def perform(self, name: str, message: str = "oh") -> None:
        journal.write(f"ran {name} {self.attempt}")
        raise Odd(message)

    @classmethod
    def retries_exhausted(cls, payload: dict[str, Any], error: BaseException) -> None:
        hook_line("exhausted", payload, error)
        payload["changed"] = "by the hook"
        payload["args"].append("changed")


class FailsDead(Fails, retry=False):
    """The same without retries; hooks of the parent class count."""


class RaisesUnprintable(Job):
    def perform(self, name: str) -> None:
        journal.write(f"ran {name} {self.attempt}")
        raise Unprintable


class Answers(Job, retry=5):
    """Its retry hook answers as the job's argument says."""

    def perform(self, name: str, answer: str) -> None:
        journal.write(f"ran {name} {self.attempt}")
        raise Odd(name)

    @classmethod
    def retry_in(cls, count: int, error: BaseException, payload: dict[str, Any]) -> Any:
        journal.write(f"asked {payload['args'][0]} {count} {type(error).__name__}")
        answer = payload["args"][1]
        payload.clear()
        if answer == "raise":
            raise KeyboardInterrupt
        named = {
            "kill": KILL,
            "discard": DISCARD,
            "none": None,
            "nan": float("nan"),
            "inf": float("inf"),
            "true": True,
        }
        if answer in named:
            return named[answer]
        try:
            return float(answer)
        except ValueError:
            return answer

    @classmethod
    def retries_exhausted(cls, payload: dict[str, Any], error: BaseException) -> None:
        hook_line("exhausted", payload, error)


class AnswersDead(Answers, retry=False):
    """No retries: the hook is not asked."""


class FewParameters(Job, retry=1):
    """Hooks that take fewer parameters."""

    def perform(self, name: str) -> None:
        raise Odd(name)

    @classmethod
    def retry_in(cls, count: int) -> float:
        return 0

    @classmethod
    def retries_exhausted(cls, payload: dict[str, Any]) -> None:
        journal.write(f"exhausted {payload['args'][0]}")


class Discards(Job):
    discard_on = (Odd, LookupError)

    def perform(self, name: str) -> None:
        journal.write(f"ran {name} {self.attempt}")
        raise KeyError(name)


class OneShot(Job, at_most_once=True):
    """May run once; waits for a file; says when it died."""

    @classmethod
    def retries_exhausted(cls, payload: dict[str, Any]) -> None:
        journal.write(f"exhausted {payload['args'][0]}")

    def perform(self, name: str) -> None:
        journal.write(f"started {name}")
        journal.wait_for_file(name)
        journal.write(f"finished {name}")


class OneShotQuick(Job, at_most_once=True):
    def perform(self, name: str) -> None:
        journal.write(name)


class Raises(Job, retry=1):
    """Raises what is no `Exception`; then is asked for a retry at once."""

    @classmethod
    def retry_in(cls) -> float:
        return 0

    def perform(self, kind: str) -> None:
        journal.write(f"ran {kind} {self.attempt}")
        if kind == "exit":
            raise SystemExit(3)
        if kind == "interrupt":
            raise KeyboardInterrupt
        if kind == "generator":
            raise GeneratorExit
        if kind == "cancelled":
            raise asyncio.CancelledError
        if kind == "group":
            raise ExceptionGroup("two", [ValueError("one"), TypeError("other")])
        if kind == "basegroup":
            raise BaseExceptionGroup("two", [SystemExit(1), ValueError("other")])
        if kind == "recursion":
            self.perform(kind + "")
        raise StopIteration


class RaisesAsync(Job, retry=False):
    async def perform(self, kind: str) -> None:
        journal.write(f"ran async {kind}")
        await asyncio.sleep(0)
        raise {"exit": SystemExit, "cancelled": asyncio.CancelledError, "odd": Odd}[kind]()


class Prints(Job):
    """Prints a line, which Python buffers where it goes into a pipe; then goes on until told."""

    def perform(self, line: str) -> None:
        print(line)
        journal.write(f"printed {line}")
        journal.wait_for_file(line)


class Leaks(Job):
    """Leaves a language, a time zone and a transaction behind."""

    def perform(self, name: str) -> None:
        translation.activate("de")
        timezone.activate("Asia/Tokyo")
        transaction.atomic().__enter__()
        User.objects.create(username=name)
        journal.write(f"leaked {name} {threading.current_thread().name}")


class Looks(Job):
    """Says what the jobs before it left in its thread."""

    def perform(self, name: str) -> None:
        users = User.objects.filter(username="leak").count()
        journal.write(
            f"looked {name} {translation.get_language()} {timezone.get_current_timezone_name()}"
            f" atomic={connection.in_atomic_block} users={users}"
            f" {threading.current_thread().name}"
        )


class Connection(Job):
    """Says which database connection it has; `spoil` makes it unusable for the next one."""

    def perform(self, name: str, spoil: bool = False) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        journal.write(f"{name} {id(connection.connection)}")
        if spoil:
            connection.close_at = time.monotonic() - 1


class Timed(Job):
    """Runs for `seconds`, and says when and where it did."""

    def perform(self, name: str, seconds: float) -> None:
        journal.write(f"begin {name} {os.getpid()} {time.monotonic():.3f}")
        time.sleep(seconds)
        journal.write(f"end {name} {os.getpid()} {time.monotonic():.3f}")


class Brief(Job):
    """Takes a few milliseconds, then writes one line."""

    def perform(self, line: str, seconds: float = 0.004) -> None:
        time.sleep(seconds)
        journal.write(line)


class Nothing(Job):
    """The quickest job there is."""

    def perform(self) -> None:
        return None


class Mixed(Job, retry=2):
    """One of a soak: succeeds, or fails `failures` times first; quick, or slow by `seconds`."""

    @classmethod
    def retry_in(cls, count: int) -> float:
        return 0.2

    def perform(self, failures: int = 0, seconds: float = 0.0) -> None:
        if seconds:
            time.sleep(seconds)
        if self.attempt <= failures:
            raise Odd("soak")


# -- death handlers, by settings


def first_handler(payload: dict[str, Any], error: BaseException) -> None:
    hook_line("first", payload, error)
    payload.clear()


def exiting_handler(payload: dict[str, Any], error: BaseException) -> None:
    journal.write(f"exiting {payload['args'][0]}")
    raise SystemExit(1)


def no_parameters() -> None:
    journal.write("no parameters")


class Callable_:
    """A callable object with an optional parameter."""

    def __call__(self, payload: dict[str, Any], error: Any = None, more: str = "default") -> None:
        journal.write(f"object {payload['args'][0]} {type(error).__name__} {more}")


callable_object = Callable_()


def last_handler(payload: dict[str, Any], error: BaseException) -> None:
    hook_line("last", payload, error)


# -- server middleware, by settings

Next = Callable[[Any, dict[str, Any]], Any]


def unserialisable(next_one: Next) -> Next:
    """Puts a value into the payload that JSON cannot hold."""

    def middleware(job: Any, payload: dict[str, Any]) -> Any:
        payload["thing"] = object()
        return next_one(job, payload)

    return middleware


def emptying(next_one: Next) -> Next:
    """Takes everything out of the payload."""

    def middleware(job: Any, payload: dict[str, Any]) -> Any:
        try:
            return next_one(job, payload)
        finally:
            payload.clear()

    return middleware


def raising(next_one: Next) -> Next:
    """Fails after the job."""

    def middleware(job: Any, payload: dict[str, Any]) -> Any:
        next_one(job, payload)
        raise RuntimeError("the middleware fails")

    return middleware


def swallowing(next_one: Next) -> Next:
    """Swallows what the job raises."""

    def middleware(job: Any, payload: dict[str, Any]) -> Any:
        try:
            return next_one(job, payload)
        except Odd:
            journal.write("swallowed")
            return None

    return middleware


def noting(next_one: Next) -> Next:
    def middleware(job: Any, payload: dict[str, Any]) -> Any:
        journal.write(f"outer {payload['args'][0]}")
        return next_one(job, payload)

    return middleware


def noting_too(next_one: Next) -> Next:
    def middleware(job: Any, payload: dict[str, Any]) -> Any:
        journal.write(f"inner {payload['args'][0]} {type(job).__name__}")
        return next_one(job, payload)

    return middleware


# -- signal receivers, by environment


def _note_signal(what: str) -> Callable[..., None]:
    def receiver(sender: Any, **named: Any) -> None:
        name = getattr(sender, "__name__", sender)
        known = " ".join(sorted(set(named) - {"signal"}))
        journal.write(f"{what} {name} {known}")

    return receiver


def _broken(sender: Any, **named: Any) -> None:
    raise Odd("a broken receiver")


def _exiting(sender: Any, **named: Any) -> None:
    raise SystemExit("an exiting receiver")


_SIGNALS = {
    "job_started": job_started,
    "job_finished": job_finished,
    "job_failed": job_failed,
    "job_died": job_died,
}
_kind = os.environ.get("COGWORKER_TEST_RECEIVERS")
for _name, _signal in _SIGNALS.items():
    if _kind == "note":
        _signal.connect(_note_signal(_name), weak=False)
    elif _kind == "broken":
        _signal.connect(_broken)
    elif _kind == "exiting":
        _signal.connect(_exiting)


class Grow(Job):
    """Keep so many megabytes for good, really written to."""

    kept: ClassVar[list[bytes]] = []

    def perform(self, name: str, megabytes: int) -> None:
        self.kept.append(b"x" * (megabytes * 2**20))
        journal.write(name)
