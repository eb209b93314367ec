"""Durations as features take them in options: seconds, or a `timedelta`."""

from __future__ import annotations

import datetime as dt
from typing import Any

#: Longer than anybody waits for a job (seconds).
LONGEST = 10 * 366 * 86_400


def seconds_or_none(value: Any) -> float | None:
    """The duration in seconds. Raises `ValueError` with what is allowed."""
    if value is None:
        return None
    if isinstance(value, dt.timedelta):
        value = value.total_seconds()
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0.001 <= value <= LONGEST
    ):
        raise ValueError("seconds above 0, a timedelta, or None")
    return value
