"""How many jobs beyond the free processors may be fetched, by the pace of the last moments.

A job must never wait in one worker's memory while another could run it. So the allowance is only
what the processors will have taken within a few milliseconds: nothing for jobs of human length,
some dozens for jobs of a fraction of a millisecond.
"""

from __future__ import annotations

import time

#: The pace is measured over so many seconds.
WINDOW = 0.05
#: What is taken within so many seconds, or within two round trips, may be fetched ahead.
AHEAD = 0.005
MOST = 400


class Rate:
    """Counts finished jobs and round trips."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._count = 0
        self._per_second = 0.0
        self._round_trip = 0.001

    def finished(self, jobs: int) -> None:
        self._count += jobs
        now = time.monotonic()
        elapsed = now - self._since
        if elapsed >= WINDOW:
            self._per_second = self._count / elapsed
            self._since, self._count = now, 0

    def round_trip(self, seconds: float) -> None:
        self._round_trip += (min(seconds, 0.05) - self._round_trip) / 8

    def misjudged(self) -> None:
        """Fetched jobs were not taken in time: begin again from nothing."""
        self._per_second, self._count, self._since = 0.0, 0, time.monotonic()

    def allowance(self) -> int:
        """How many jobs may be fetched beyond the free processors now."""
        return min(MOST, int(self._per_second * max(AHEAD, 2 * self._round_trip)))
