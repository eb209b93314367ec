"""The locks of the jobs that run in this process: each is extended long before it would end.

So a job may run longer than its lock's TTL, and the lock of a job whose worker died ends by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from time import monotonic

from django_cogworker.features.unique.locks import Lock
from django_cogworker.store.values import Effect


class Running:
    """Thread-safe: processors come and go, the heartbeat looks."""

    def __init__(self) -> None:
        self._locks: dict[int, tuple[Lock, float]] = {}
        self._guard = threading.Lock()

    def begins(self, lock: Lock) -> Callable[[], None]:
        """The job that has this lock runs; returns what is to be called when it is over."""
        run = id(lock)
        with self._guard:
            self._locks[run] = (lock, monotonic())
        return partial(self._over, run)

    def _over(self, run: int) -> None:
        with self._guard:
            self._locks.pop(run, None)

    def due(self) -> tuple[Effect, ...]:
        """Effects that extend the locks of which a third of the TTL has gone by."""
        now = monotonic()
        effects: tuple[Effect, ...] = ()
        with self._guard:
            for run, (lock, since) in self._locks.items():
                if now - since >= lock.ttl / 3:
                    self._locks[run] = (lock, now)
                    effects += lock.extended()
        return effects
