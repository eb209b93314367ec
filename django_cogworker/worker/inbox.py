"""The inbox of a worker's processors: things to do, taken in order by whoever is free.

A batch of jobs that take microseconds is best run by one thread: woken for one each, ten of them would do
nothing but hand the interpreter's lock to each other, and keep the fetcher from it. A batch of jobs that wait for
a database wants as many threads as there are. Which kind it is nobody knows before. So one processor is called at a
time, and it calls the next one before it begins with what it took: while the first keeps the
interpreter, the one called waits for it, and gets it the moment that the first waits for anything.

Those who wait lie on a stack, so the same few threads do the work of a worker that has little.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any


def _nothing() -> float | None:
    return None


class Inbox:
    """Of one worker. Any thread may put and take; each step is one that the interpreter does not divide."""

    def __init__(self) -> None:
        self._things: deque[Any] = deque()
        #: The locks of those who wait; whoever releases one has called its owner.
        self._waiting: list[Any] = []
        #: One was called, and has not come yet.
        self._called = False

    def put(self, things: Iterable[Any]) -> None:
        """Put things there, and see that somebody comes for them."""
        self._things.extend(things)
        self._call()

    def get(self, idle: Callable[[], float | None] = _nothing) -> Any:
        """The next thing, as soon as there is one. `idle` is called before each wait, and again after the seconds
        that it returns.
        """
        call: Any = None
        while True:
            try:
                thing = self._things.popleft()
            except IndexError:
                if call is None:
                    call = threading.Lock()
                    call.acquire()
                self._wait(call, idle())
                continue
            if self._things:
                self._call()
            return thing

    def get_nowait(self) -> Any:
        """The next thing. Raises `IndexError` where there is none."""
        return self._things.popleft()

    def _call(self) -> None:
        if self._called:
            return  # whoever comes looks first, and calls the next one
        try:
            call = self._waiting.pop()
        except IndexError:
            return  # all are at work, and look here when they are done
        self._called = True
        call.release()

    def _wait(self, call: Any, seconds: float | None) -> None:
        self._waiting.append(call)
        if self._things and self._is_taken_off(call):  # put there before we were to be found
            return
        if not call.acquire(timeout=-1 if seconds is None else min(seconds, threading.TIMEOUT_MAX)):
            if self._is_taken_off(call):
                return
            call.acquire()  # called in this very moment
        self._called = False

    def _is_taken_off(self, call: Any) -> bool:
        """Whether the owner of `call` waits no more, and nobody has called it."""
        try:
            self._waiting.remove(call)
        except ValueError:
            return False
        return True
