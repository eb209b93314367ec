"""Moments as a test writes them: "2026-03-29 01:59", a date, a `datetime`, epoch seconds."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django_cogworker.conf import default_zone
from django_cogworker.exceptions import TestModeError

Moment = str | dt.date | float
Zone = str | dt.tzinfo | None


def zone_of(given: Zone) -> dt.tzinfo:
    """That zone, or `TIME_ZONE`. Raises `TestModeError`."""
    if isinstance(given, dt.tzinfo):
        return given
    name = default_zone() if given is None else given
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
        raise TestModeError(
            f"tz={name!r} is no time zone; allowed is an IANA name such as 'Europe/Paris', or a tzinfo."
        ) from None


def epoch_of(given: Moment, zone: dt.tzinfo) -> float:
    """Epoch seconds; what names no zone is local there. Raises `TestModeError` for what is no moment."""
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return in_calendar(given, zone)
    if isinstance(given, str):
        try:
            given = dt.datetime.fromisoformat(given.strip())
        except ValueError:
            pass
    if isinstance(given, dt.date) and not isinstance(given, dt.datetime):
        given = dt.datetime(given.year, given.month, given.day)
    if not isinstance(given, dt.datetime):
        raise TestModeError(
            f"{given!r} is no moment; allowed are a text such as '2026-03-29 01:59' or "
            "'2026-03-29T00:59:00+00:00', a date, a datetime, and epoch seconds."
        )
    if given.utcoffset() is not None:
        return given.timestamp()
    local = given.replace(tzinfo=zone)
    back = local.astimezone(dt.UTC).astimezone(zone)
    if back.replace(tzinfo=None, fold=0) != given.replace(fold=0):
        raise TestModeError(
            f"{given} does not exist in {zone}: clocks go forward over it there. Name another one, or one with "
            f"an offset, such as {back.isoformat()!r}."
        )
    return local.timestamp()


def in_calendar(seconds: float, zone: dt.tzinfo) -> float:
    """The same epoch seconds, if a calendar has that moment. Raises `TestModeError`."""
    try:
        dt.datetime.fromtimestamp(seconds, zone)
    except (OverflowError, ValueError, OSError):
        raise TestModeError(
            f"{seconds!r} is no moment of the calendar: the years 1 to 9999 have epoch seconds up to 253402300799."
        ) from None
    return float(seconds)
