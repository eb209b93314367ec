"""The corridor: where jobs wait that were passed on from their room and are not the processors' yet.

A job that cannot run in its room keeps its slot there until a processor is free; then it counts in the
processors' room. What waits too long, or when fetching ends, goes back to its queue.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from django_cogworker.worker.fetch.room import Room
from django_cogworker.worker.hand import Unit

#: No job waits longer than this (seconds); meanwhile it keeps its slot of the loop.
PASSED_ON_HOLD = 1.0


class Corridor:
    """The one of a fetcher, whose thread alone changes it."""

    def __init__(self, main: Room, may_fetch: Callable[[], bool]) -> None:
        """`main` is the room of the processors."""
        self._main = main
        self._may_fetch = may_fetch
        self._waiting: list[Unit] = []

    def enter(self, unit: Unit) -> None:
        unit.offered = time.monotonic()
        self._waiting.append(unit)

    @property
    def deadline(self) -> float | None:
        """Until when (monotonic) the first may wait, or `None` where nobody does."""
        return self._waiting[0].offered + PASSED_ON_HOLD if self._waiting else None

    def let_through(self) -> None:
        """Free processors get the jobs."""
        while self._waiting and self._may_fetch():
            if self._main.unfinished >= self._main.capacity:
                break
            unit = self._waiting.pop(0)
            unit.room.leaves()
            unit.room = self._main
            self._main.unfinished += 1
            self._main.hand.offer([unit])

    def turn_back(self) -> list[Unit]:
        """Those that must not wait any longer, the oldest first."""
        if not self._waiting:
            return []
        if not self._may_fetch():
            back, self._waiting = self._waiting, []
            return back
        late = time.monotonic() - PASSED_ON_HOLD
        back = [each for each in self._waiting if each.offered <= late]
        del self._waiting[: len(back)]
        return back

    def start_over(self) -> None:
        """Others have the jobs, and nobody here runs them."""
        for unit in self._waiting:
            unit.room.leaves()
        self._waiting = []
