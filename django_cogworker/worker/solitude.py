"""Solitude: one job runs in this worker with no other beside it.

A job that was running when its worker died, twice already, is under suspicion. It runs alone, so
that if it kills this worker too, it takes no neighbours along. The worker fetches nothing meanwhile
and first lets its running jobs end; where that takes too long, or another suspect is at it already,
the job waits in the scheduled set and tries its luck again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from django_cogworker.worker.hand import Hand

#: Seconds that a suspect waits for its neighbours to end.
PATIENCE = 30.0
#: Seconds that it stays away when that was in vain.
AWAY = 15.0
#: Seconds that it stays away because another suspect came first: that one keeps this worker from
#: fetching as long as it takes, so there is no need to wait for longer.
RIVAL = 1.0


class Solitude:
    """One worker's."""

    def __init__(
        self,
        hand: Hand,
        hold_back: Callable[[bool], None],
        stopping: Callable[[], bool],
        others: Sequence[Hand] = (),
    ) -> None:
        """`hand`: that of the processors, one of which runs the suspect; `others` of the same worker.
        `hold_back(True)` keeps the fetcher from fetching and makes it give back what nobody took.
        """
        self._hands = (hand, *others)
        self._hold_back = hold_back
        self._stopping = stopping
        self._lock = threading.Lock()

    @contextmanager
    def alone(self) -> Iterator[float]:
        """Yields 0 where the caller's job is the only one now, and while it is, no other starts; else
        for how many seconds the job should stay away.
        """
        if not self._lock.acquire(blocking=False):
            yield RIVAL
            return
        try:
            self._hold_back(True)
            yield 0.0 if self._neighbours_ended() else AWAY
        finally:
            self._hold_back(False)
            self._lock.release()

    def _neighbours_ended(self) -> bool:
        deadline = time.monotonic() + PATIENCE
        nap = threading.Event()
        alone = 0
        while alone < 2:  # twice: what the fetcher was just about to offer shows up meanwhile
            running = sum(len(each.running) for each in self._hands)
            waiting = any(each.untaken for each in self._hands)
            alone = 0 if running > 1 or waiting else alone + 1
            if self._stopping() or time.monotonic() > deadline:
                return False
            nap.wait(0.01)
        return not self._stopping()
