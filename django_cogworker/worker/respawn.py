"""When the place of a worker process that has ended is filled again.

A process that lived for a while is replaced at once, and so is the first one that crashes quickly:
that is bad luck. One that crashes again and again has a fault of its own, and trying all the time
would only burn the processor: then the waits grow from one second to a minute.
"""

from __future__ import annotations

#: Seconds of life that make a crash an accident and not the next one of a row.
LONG_LIFE = 30.0
LONGEST_WAIT = 60.0


class Respawn:
    """The back-off of one slot."""

    def __init__(self) -> None:
        self._quick_crashes = 0
        self._due = 0.0

    def crashed(self, now: float, lived: float) -> float:
        """Note the end of a process at `now` after `lived` seconds; how long its place stays empty."""
        if lived >= LONG_LIFE:
            self._quick_crashes = 0
            wait = 0.0
        else:
            self._quick_crashes += 1
            row = self._quick_crashes
            wait = 0.0 if row == 1 else min(2.0 ** min(row - 2, 10), LONGEST_WAIT)
        self._due = now + wait
        return wait

    def replaced(self, now: float) -> None:
        """Note an end that was wanted: the place is filled at once, and the row of crashes stands."""
        self._due = now

    def is_due(self, now: float) -> bool:
        return now >= self._due
