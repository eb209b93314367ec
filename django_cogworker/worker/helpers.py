"""The helpers of the loop: threads for synchronous code, so that none of it runs on the loop itself.

`Helpers` is a pool that grows with need and shrinks again: middleware, signal receivers, death hooks, features
that ask Redis. `SyncThread` is the one thread in which what coroutines call by `sync_to_async` runs, database calls
above all: asgiref wants one thread for all of it. Both are daemons, for a job that hangs must not keep the
process from ending.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from contextlib import suppress
from contextvars import ContextVar
from queue import Empty, SimpleQueue
from typing import Any

from django_cogworker.worker import surroundings
from django_cogworker.worker.threads import start_thread

#: A helper with nothing to do ends after so many seconds.
IDLE = 30.0

Outcome = tuple[Any, BaseException | None]


class Caller:
    """A job on the loop, as `SyncThread` knows it."""

    __slots__ = ("has_called",)

    def __init__(self) -> None:
        #: It has called something by `sync_to_async`, and may be in the midst of it: rows are read in many calls.
        self.has_called = False


#: The job whose code this is. Tasks that it starts have it, too.
caller: ContextVar[Caller | None] = ContextVar("cogworker_caller", default=None)


class Helpers:
    """A pool of at most `limit` threads. Asked from the loop alone."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()
        self._pending = 0
        self._threads = 0

    async def run(self, function: Callable[[], Any]) -> Any:
        """What `function` returns. It sees the caller's context variables."""
        value, error = await self.attempt(function)
        if error is not None:
            raise error
        return value

    async def attempt(self, function: Callable[[], Any]) -> Outcome:
        """What `function` returns, or what it raises, also what no future can carry."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        context = contextvars.copy_context()

        def answer(outcome: Outcome) -> None:
            if not future.done():
                future.set_result(outcome)

        def work() -> None:
            outcome = context.run(_outcome, function)
            with suppress(RuntimeError):  # the loop has ended: nobody waits
                loop.call_soon_threadsafe(answer, outcome)

        self._submit(work)
        return await future

    def _submit(self, work: Callable[[], None]) -> None:
        with self._lock:
            self._pending += 1
            self._work.put(work)
            if self._pending <= self._threads or self._threads == self._limit:
                return
            self._threads += 1
        start_thread("loop-helper", self._help)

    def _help(self) -> None:
        while True:
            try:
                work = self._work.get(timeout=IDLE)
            except Empty:
                with self._lock:
                    if not self._work.empty():
                        continue
                    self._threads -= 1
                surroundings.thread_ends()
                return
            try:
                surroundings.before_job()
                work()
                surroundings.tidy("of the loop")
            finally:
                with self._lock:
                    self._pending -= 1


def _outcome(function: Callable[[], Any]) -> Outcome:
    try:
        return function(), None
    except BaseException as error:
        return None, error


class SyncThread(Executor):
    """One thread, one call after the other. It starts with the first."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._started = self._used = False
        #: Nobody is in the midst of using a connection. Set by its own thread.
        self._rests = False

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self._used = True
        job = caller.get()
        if job is not None:
            job.has_called = True
        self._work.put(work)
        if not self._started:
            self._started = True
            start_thread("loop-sync", self._loop)
        return future

    def tidy(self, jid: str, job: Caller, others: Iterable[Caller]) -> None:
        """A job has ended: tidy up after it, if it or anybody has called since the last time. `others` still run."""
        if self._used or job.has_called:
            self._used = False
            shared = any(each.has_called for each in others)
            self._work.put(lambda: self._tidied(jid, shared))

    def end(self) -> None:
        self._work.put(None)

    def _loop(self) -> None:
        try:
            while True:
                try:
                    work = self._work.get(
                        timeout=surroundings.close_aged() if self._rests else None
                    )
                except Empty:
                    continue
                if work is None:
                    return
                self._rests = False
                work()
        finally:
            surroundings.thread_ends()

    def _tidied(self, jid: str, shared: bool) -> None:
        surroundings.tidy(jid, shared=shared)
        surroundings.before_job(shared=shared)
        self._rests = not shared
