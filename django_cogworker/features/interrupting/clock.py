"""The clock: one thread a process that calls each limit when it is due.

It is made when the first job with a limit runs. It holds the limits of jobs that run now and no
others, so it is never larger than the number of processors. Most jobs end long before their limit;
the clock does not hear of them until the earliest limit that it knew has come, and then looks anew.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from typing import Protocol

logger = logging.getLogger("django_cogworker")


class Timed(Protocol):
    at: float

    def due(self, now: float) -> None: ...


class Clock:
    """Calls `due` of each that was added, when its `at` (monotonic) has come."""

    def __init__(self) -> None:
        self._timed: dict[int, Timed] = {}
        self._news = threading.Condition()
        self._wakes_at = math.inf
        self._thread: threading.Thread | None = None

    def add(self, timed: Timed) -> None:
        self._timed[id(timed)] = timed
        with self._news:
            if self._thread is None or not self._thread.is_alive():  # the first, or after a fork
                self._thread = threading.Thread(
                    target=self._loop, name="cogworker-clock", daemon=True
                )
                self._thread.start()
            elif timed.at < self._wakes_at:
                self._news.notify()

    def remove(self, timed: Timed) -> None:
        """May be called twice, and takes no lock: its caller may be interrupted in it."""
        self._timed.pop(id(timed), None)

    def _loop(self) -> None:
        while True:
            try:
                self._turn()
            except Exception:
                logger.critical("The clock of time limits failed; it goes on.", exc_info=True)
                time.sleep(1.0)

    def _turn(self) -> None:
        with self._news:
            self._wakes_at = min((each.at for each in self._all()), default=math.inf)
            wait = self._wakes_at - time.monotonic()
            if wait > 0:
                self._news.wait(min(wait, threading.TIMEOUT_MAX))
            self._wakes_at = -math.inf  # it looks at all of them now; nobody has to wake it
        now = time.monotonic()
        for each in self._all():
            if each.at <= now:
                each.due(now)

    def _all(self) -> list[Timed]:
        return list(self._timed.values())


clock = Clock()
