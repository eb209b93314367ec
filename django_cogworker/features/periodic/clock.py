"""Redis's time between two readings of it, carried on by the monotonic clock.

So a wall clock that is set, by minutes or by hours, moves no slot, and all workers agree.
"""

from __future__ import annotations

import time
from typing import Any

#: Seconds after which it is read again: a machine that slept has a monotonic clock that slept too.
STALE = 30.0


class Clock:
    def __init__(self) -> None:
        self._offset = 0.0
        self._read_at = float("-inf")

    @property
    def is_stale(self) -> bool:
        return time.monotonic() - self._read_at >= STALE

    def now(self) -> float:
        """Epoch seconds of Redis; only after it was set."""
        return self._offset + time.monotonic()

    def set(self, reply: Any) -> None:
        """From the reply to `TIME`."""
        seconds, microseconds = reply
        self._read_at = time.monotonic()
        self._offset = int(seconds) + int(microseconds) / 1e6 - self._read_at
