"""Waiting for the end of a tracked job, by looking again and again, at growing intervals.

An error of Redis is no answer: it is looked again, until the time is over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import redis
from asgiref.sync import sync_to_async

from django_cogworker.exceptions import (
    JobCancelled,
    JobFailedError,
    NoResultError,
    NotTrackedError,
    ResultTimeout,
    TestModeError,
)
from django_cogworker.features.status import modes
from django_cogworker.features.status.reading import JobStatus, read
from django_cogworker.store.errors import is_unavailable

#: The first and the longest pause between two looks (seconds).
FIRST_PAUSE = 0.02
LONGEST_PAUSE = 0.5


class _Wait:
    """One wait: what the looks found, and when it is over."""

    def __init__(self, jid: str | None, timeout: float, needs_result: bool) -> None:
        if not isinstance(jid, str) or not jid:
            raise ValueError(f"{jid!r} is no jid of a job; was its push refused as a duplicate?")
        given: Any = timeout
        number = isinstance(given, (int, float)) and not isinstance(given, bool)
        if not number or not timeout >= 0:
            raise ValueError(f"timeout={timeout!r}; allowed is a number of seconds from 0.")
        self.jid = jid
        self._timeout = timeout
        self._needs_result = needs_result
        self._deadline = time.monotonic() + timeout
        self._trouble: Exception | None = None
        self._state = ""

    def look(self) -> JobStatus | None:
        """The status once the job has ended. Raises what makes the wait futile."""
        try:
            found = read(self.jid)
        except (redis.RedisError, OSError) as error:
            if not is_unavailable(error):
                raise
            self._trouble = error
            return None
        self._trouble = None
        if found is None:
            raise NotTrackedError(
                f"Nothing is known of job {self.jid}. Only jobs with track=True or result_ttl=… are "
                "tracked, from the commit of their transaction until their status expires."
            )
        if self._needs_result and not found.keeps_result:
            raise NoResultError(
                f"Job {self.jid} ({found.job_class}) keeps no result: give its class result_ttl=…, "
                "or use wait(), which is content with its end."
            )
        if found.has_ended:
            return found
        if modes.board() is not None:
            raise TestModeError(
                f"Job {self.jid} is {found.state}, and no worker runs in a test mode: run it by "
                "perform_one() or drain() before you ask for its end."
            )
        self._state = found.state
        return None

    def pauses(self) -> Iterator[float]:
        """How long to wait before each further look. Raises `ResultTimeout` when the time is over."""
        pause = FIRST_PAUSE
        while True:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise self._too_late() from self._trouble
            yield min(pause, left)
            pause = min(pause * 1.5, LONGEST_PAUSE)

    def _too_late(self) -> ResultTimeout:
        why = f"it is {self._state}" if self._state else "its state is not known"
        if self._trouble is not None:
            why = f"Redis cannot be asked ({self._trouble})"
        return ResultTimeout(f"Job {self.jid} did not end within {self._timeout:g} s: {why}.")


def wait(jid: str | None, timeout: float) -> JobStatus:
    """Wait until the job has ended, well or not; its status then.

    Raises `ResultTimeout`, or `NotTrackedError` at once where nothing is known of the job. A job that
    fails and is tried again has not ended.
    """
    return _until_end(_Wait(jid, timeout, needs_result=False))


async def await_end(jid: str | None, timeout: float) -> JobStatus:
    """`wait` for coroutines."""
    return await _until_end_async(_Wait(jid, timeout, needs_result=False))


def result(jid: str | None, timeout: float = 0.0) -> Any:
    """The return value of the job, for which its end is awaited up to `timeout` seconds.

    Raises `ResultTimeout`, `NotTrackedError`, `NoResultError` (at once, where the job keeps none),
    `JobCancelled`, or `JobFailedError` where it ended in another way without success.
    """
    return _value(_until_end(_Wait(jid, timeout, needs_result=True)))


async def aresult(jid: str | None, timeout: float = 0.0) -> Any:
    """`result` for coroutines."""
    return _value(await _until_end_async(_Wait(jid, timeout, needs_result=True)))


def _until_end(waiting: _Wait) -> JobStatus:
    pauses = waiting.pauses()
    while (found := waiting.look()) is None:
        time.sleep(next(pauses))
    return found


async def _until_end_async(waiting: _Wait) -> JobStatus:
    look = sync_to_async(waiting.look, thread_sensitive=False)
    pauses = waiting.pauses()
    while (found := await look()) is None:
        await asyncio.sleep(next(pauses))
    return found


def _value(found: JobStatus) -> Any:
    if found.state == "complete":
        return found.result
    if found.state == "cancelled":
        raise JobCancelled(f"Job {found.jid} was cancelled.")
    said = f": {found.error_class}: {found.error_message}" if found.error_class else ""
    raise JobFailedError(f"Job {found.jid} ({found.job_class}) is {found.state}{said}.")
