"""One run with a time limit: armed, perhaps interrupted, and in any case disarmed.

Python code is interrupted by an exception that the interpreter raises in its thread, at the next
moment when it runs Python code; a coroutine by the cancellation of its task. A job may swallow
either, so it is repeated each second until the grace is over; then the job is stuck.

The rule of the thread: an interruption that is under way when the job ends must not land in what
the thread does next. Setting it and disarming stand under one lock; disarming takes back one that
is set and has not landed. One that lands while the thread is about to disarm is caught, and
disarming is begun again.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

from django.db import connections

from django_cogworker.exceptions import JobTimeout
from django_cogworker.features.timeout.clock import clock

#: Seconds between interruptions of a job that does not yield.
AGAIN = 1.0


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Have an exception raised in that thread; with `None` take back one that has not landed yet."""
    wanted = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), wanted)


class Limit:
    """That of one run. `clock` calls `due`, the job's thread everything else."""

    def __init__(
        self,
        payload: dict[str, Any],
        seconds: float,
        grace: float,
        stuck: Callable[[Limit], None],
    ) -> None:
        """`stuck` is called once, in a thread of the clock, when the grace is over as well."""
        self.payload = payload
        self.seconds = seconds
        #: What the run ended with, where it did not end in time.
        self.error: JobTimeout | None = None
        #: When the clock is to call `due` (monotonic).
        self.at = 0.0
        self._grace, self._stuck = grace, stuck
        self._stuck_at = 0.0
        self._thread = self._code_thread = 0
        self._lock = threading.Lock()
        self._armed = self._fired = False
        self._is_task = False
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # Around the job's own code.

    def call(self, code: Callable[[], Any]) -> Any:
        """Run it within the limit. Raises `JobTimeout` where the limit was reached, whatever the
        code made of it.
        """
        try:
            try:
                self._arm()
                result = code()
            finally:
                self._disarm()
        except BaseException as error:
            self._disarm()  # an interruption may have landed on the way out
            if not self._fired:
                raise
            cause = None if isinstance(error, JobTimeout) else error
            raise self._timeout(error) from cause
        if self._fired:
            raise self._timeout(None)
        return result

    def awaiting(self, coroutine: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        """The coroutine, to be cancelled at the limit. From here on the thread itself, which waits
        for it, is not interrupted any more.
        """
        with self._lock:
            self._is_task = True
            _raise_in(self._thread, None)
        return self._awaited(coroutine)

    async def _awaited(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        task = asyncio.current_task()
        with self._lock:
            self._loop, self._task = asyncio.get_running_loop(), task
            self._code_thread = threading.get_ident()
            late = self._fired
        if late:
            self._cancel()
        try:
            return await coroutine
        finally:
            self._task = None  # in the loop's thread, as `_cancel`: none comes after this

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _arm(self) -> None:
        now = time.monotonic()
        self._thread = self._code_thread = threading.get_ident()
        self.at = now + self.seconds
        self._stuck_at = self.at + self._grace
        self._armed = True
        clock.add(self)

    def _disarm(self) -> None:
        while True:
            try:
                with self._lock:
                    self._armed = False
                    if not self._is_task:
                        _raise_in(self._thread, None)
                clock.remove(self)
                return
            except JobTimeout:
                continue

    def _timeout(self, error: BaseException | None) -> JobTimeout:
        timeout = error if isinstance(error, JobTimeout) else JobTimeout()
        timeout.args = (f"The job ran longer than its limit of {self.seconds:g} s.",)
        self.error = timeout
        _close_connections()
        return timeout

    # The clock's side.

    def due(self, now: float) -> None:
        """The limit is reached, or the job has not yielded to an interruption."""
        with self._lock:
            if not self._armed:
                return
            if not self._fired or now < self._stuck_at:
                self._fired = True
                self.at = min(now + AGAIN, max(now + 0.01, self._stuck_at))
                self._interrupt()
                return
            self.at = float("inf")
        self._stuck(self)

    def _interrupt(self) -> None:
        if not self._is_task:
            _raise_in(self._thread, JobTimeout)
        elif self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has just been closed
                self._loop.call_soon_threadsafe(self._cancel)

    def stack(self) -> str:
        """Where the job is now."""
        frame = sys._current_frames().get(self._code_thread)
        return "" if frame is None else "".join(traceback.format_stack(frame))


def _close_connections() -> None:
    """The job's database connections: one that was interrupted in a query cannot be used again.

    Those in a transaction belong to the caller, or whoever tidies up after the job rolls them back.
    """
    for each in connections.all(initialized_only=True):
        if not each.in_atomic_block:
            each.close()
