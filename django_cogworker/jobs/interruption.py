"""Interrupting a running job's own code from another thread.

Python code is interrupted by an exception that the interpreter raises in its thread, at the next moment when
it runs Python code; a coroutine by the cancellation of its task. The run then ends by that error, whatever the
code made of it, and its database connections are closed, for it may have been in the middle of a query.

The rule of the thread: an interruption that is under way when the code ends must not land in what the thread
does next. The thread says that the code is over and then looks for a reason to interrupt it; the interrupter
gives its reason and then looks whether the code is over. So at least one of them sees the other: nobody is
interrupted too late, or the thread knows and takes back, under the lock, what has not landed. What lands on
the way out is caught, and the way out begun again. A run that nobody interrupts never touches the lock.
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

from django_cogworker.exceptions import JobCancelled, JobTimeout

Interruption = type[JobTimeout] | type[JobCancelled]

#: What `Interruptible._thread` says besides the thread that runs the code.
_NOT_YET, _IS_TASK, _OVER = 0, -1, -2

#: One for all runs: it is held for microseconds, and by those alone who interrupt or were interrupted.
_lock = threading.Lock()

#: The runs whose own code runs now.
_running: dict[int, Interruptible] = {}


class Interruptible:
    """One run of a job, as far as it can be interrupted."""

    __slots__ = (
        "_code_thread",
        "_reason",
        "_task",
        "_thread",
        "began_at",
        "coroutine",
        "ended_by",
        "loop",
    )

    jid: str

    def __init__(self) -> None:
        #: The error that the run ended by where it was interrupted.
        self.ended_by: JobTimeout | JobCancelled | None = None
        self._reason: tuple[Interruption, str] | None = None
        self._thread = self._code_thread = _NOT_YET
        self._task: asyncio.Task[Any] | None = None
        #: When the code began (epoch seconds), and what is awaited on which loop where it is a coroutine.
        self.began_at = 0.0
        self.coroutine: Coroutine[Any, Any, Any] | None = None
        self.loop: asyncio.AbstractEventLoop | None = None

    # The job's side.

    def run(self, code: Callable[[], Any]) -> Any:
        """What the job's own code returns. Raises the interruption, whatever the code made of it."""
        try:
            try:
                self.began_at = time.time()
                _running[id(self)] = self
                self._thread = self._code_thread = threading.get_ident()
                if self._reason is not None:
                    raise self._reason[0]
                result = code()
            finally:
                self._leave()
        except BaseException as error:
            self._leave()  # an interruption may have landed on the way out
            if self._reason is None:
                raise
            ended = self._end(error)
            if ended is error:
                raise
            raise ended from error
        if self._reason is not None:
            raise self._end(None)
        return result

    def _leave(self) -> None:
        while True:
            try:
                self._thread = _OVER
                if self._reason is not None:
                    with _lock:
                        _take_back()
                _running.pop(id(self), None)
                return
            except (JobTimeout, JobCancelled):
                continue

    def awaiting(self, coroutine: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        """The coroutine of the job's own code, to be awaited in its place. From here on the thread itself, which
        may wait for it in `run`, is not interrupted any more.
        """
        if self._thread != _NOT_YET:
            with _lock:
                self._thread = _IS_TASK
                if self._reason is not None:
                    _take_back()
        return self._awaited(coroutine)

    async def _awaited(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        self.began_at = self.began_at or time.time()
        _running[id(self)] = self
        self._code_thread = threading.get_ident()
        self.coroutine = coroutine
        self.loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._thread = _IS_TASK
        try:
            if self._reason is not None:
                coroutine.close()
                raise self._reason[0]
            result = await coroutine
        except BaseException as error:
            if self._reason is None:
                raise
            _uncancel()
            ended = self._end(error)
            if ended is error:
                raise
            raise ended from error
        finally:
            self._task = (
                None  # in the loop's thread, as `_cancel`: no cancellation comes after this
            )
            self._thread = _OVER
            self.coroutine = None
            _running.pop(id(self), None)
        if self._reason is not None:
            raise self._end(None)
        return result

    def _end(self, error: BaseException | None) -> JobTimeout | JobCancelled:
        """The error of the run, as one of its own class was raised or as a new one."""
        assert self._reason is not None
        kind, message = self._reason
        ended = error if isinstance(error, kind) else kind()
        ended.args = (message,)
        self.ended_by = ended
        _close_connections()
        return ended

    # The other side.

    def interrupt(self, kind: Interruption, message: str) -> bool:
        """End the code by an error of this class with this message; from any thread, as often as it takes. The
        first reason counts. False where the code is over. One that has not begun yet does not begin.
        """
        with _lock:
            if self._thread == _OVER:
                return False
            if self._reason is None:
                self._reason = (kind, message)
            thread = self._thread  # looked at after the reason was given
            if thread > 0:
                _raise_in(thread, self._reason[0])
            elif thread == _IS_TASK and self.loop is not None:
                with contextlib.suppress(RuntimeError):  # the loop has just been closed
                    self.loop.call_soon_threadsafe(self._cancel)
            return thread != _OVER

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    @property
    def is_over(self) -> bool:
        """Whether the code has ended: its thread may be at something else by now."""
        return self._thread == _OVER

    @property
    def is_interrupted(self) -> bool:
        return self._reason is not None

    def stack(self) -> str:
        """Where the thread of the code is now; of a coroutine that is the loop's, wherever it is."""
        frame = sys._current_frames().get(self._code_thread)
        return "" if frame is None else "".join(traceback.format_stack(frame))


def running() -> list[Interruptible]:
    """The runs of this process whose own code runs now."""
    return list(_running.values())


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Have an exception raised in that thread; with `None` take back one that has not landed yet."""
    wanted = None if kind is None else ctypes.py_object(kind)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), wanted)


class _Nothing(BaseException):
    """Raised to be caught at once."""


def _take_back() -> None:
    """Take back what has not landed in this thread. Only where there is something: Python 3.11 keeps an interpreter
    that was asked for nothing waiting for it, and a debugger or coverage hangs at its next call. So there one that
    lands at once takes the place.
    """
    if sys.version_info >= (3, 12):
        _raise_in(threading.get_ident(), None)
        return
    with contextlib.suppress(_Nothing):
        _raise_in(threading.get_ident(), _Nothing)
        while True:
            pass


def _uncancel() -> None:
    """The task has heard it; whoever goes on in it is not to count this cancellation."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()


def _close_connections() -> None:
    """The database connections of this thread: one that was interrupted in a query cannot be used again.

    Those in a transaction belong to the caller, or whoever tidies up after the job rolls them back.
    """
    for each in connections.all(initialized_only=True):
        if not each.in_atomic_block:
            each.close()
