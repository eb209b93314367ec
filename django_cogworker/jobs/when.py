"""When a job is due: delays and moments, in the forms that people write them."""

from __future__ import annotations

import datetime as dt
import math

from django_cogworker import clock
from django_cogworker.exceptions import ArgumentError
from django_cogworker.payload.job import LAST_MOMENT

Delay = float | dt.timedelta
Moment = dt.datetime | float

#: As a delay, a number from here on means a moment (epoch seconds): nobody waits for thirty years.
FIRST_MOMENT = 1_000_000_000


def due_after(delay: Delay) -> float:
    """Epoch seconds for a delay in seconds or as a `timedelta`."""
    if isinstance(delay, dt.timedelta):
        return _checked(clock.now() + delay.total_seconds(), delay)
    seconds = _number(delay, "a delay is a number of seconds or a timedelta")
    return _checked(seconds if seconds >= FIRST_MOMENT else clock.now() + seconds, delay)


def due_at(moment: Moment) -> float:
    """Epoch seconds for an aware `datetime` or epoch seconds."""
    if isinstance(moment, dt.datetime):
        if moment.utcoffset() is None:
            raise ArgumentError(
                f"perform_at was given {moment!r}, which has no time zone; use timezone.make_aware()."
            )
        return _checked(moment.timestamp(), moment)
    return _checked(_number(moment, "a moment is an aware datetime or epoch seconds"), moment)


def _number(value: object, allowed: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentError(f"{value!r} is no time: {allowed}.")
    try:
        return float(value)
    except OverflowError:  # a whole number beyond all floats
        return math.inf if value > 0 else -math.inf


def _checked(at: float, given: object) -> float:
    if not math.isfinite(at) or not abs(at) < LAST_MOMENT:
        raise ArgumentError(f"{given!r} is no time that can come.")
    return round(at, 6)
