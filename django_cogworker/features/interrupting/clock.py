"""The clock: one thread a process that calls each limit when it is due.

It is made when the first job with a limit runs. It holds the limits of jobs that run now and no
others, so it is never larger than the number of processors. Most jobs end long before their limit;
the clock does not hear of them until the earliest limit that it knew has come, and then looks anew.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from queue import Empty, SimpleQueue
from typing import Protocol

logger = logging.getLogger("django_cogworker")


#: It looks at least so often (seconds).
LONGEST = 3600.0


class Timed(Protocol):
    at: float

    def due(self, now: float) -> None: ...


class Clock:
    """Calls `due` of each that was added, when its `at` (monotonic) has come.

    No lock is taken to add and to remove: who does so may itself be interrupted (a job that runs another one, in a
    test mode), and would leave it locked for ever.
    """

    def __init__(self) -> None:
        self._timed: dict[int, Timed] = {}
        self._news: SimpleQueue[None] = SimpleQueue()
        #: When it looks again; while it looks, infinity: then everybody who adds wakes it.
        self._wakes_at = math.inf
        self._thread: threading.Thread | None = None

    def add(self, timed: Timed) -> None:
        self._timed[id(timed)] = timed
        if self._thread is None or not self._thread.is_alive():  # the first, or after a fork
            self._start()
        elif timed.at < self._wakes_at:
            self._news.put(None)

    def remove(self, timed: Timed) -> None:
        """May be called twice."""
        self._timed.pop(id(timed), None)

    def _start(self) -> None:
        """Two threads may do so at once: the one whose thread is not kept ends it."""
        thread = threading.Thread(target=self._loop, name="cogworker-clock", daemon=True)
        self._thread = thread
        thread.start()

    def _loop(self) -> None:
        while self._thread is threading.current_thread():
            try:
                self._turn()
            except Exception:
                logger.critical("The clock of time limits failed; it goes on.", exc_info=True)
                time.sleep(1.0)
        self._news.put(None)  # it may have taken one that was meant for the thread that is kept

    def _turn(self) -> None:
        self._wakes_at = math.inf
        self._wakes_at = min((each.at for each in self._all()), default=math.inf)
        wait = self._wakes_at - time.monotonic()
        if wait > 0:
            with contextlib.suppress(Empty):
                self._news.get(timeout=min(wait, LONGEST))
        now = time.monotonic()
        for each in self._all():
            if each.at <= now:
                each.due(now)

    def _all(self) -> list[Timed]:
        return list(self._timed.values())


clock = Clock()
