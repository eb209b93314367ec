"""Moments for people: epoch seconds as text in the time zone that counts for them."""

from __future__ import annotations

import datetime as dt

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import get_language


def moment(at: float) -> str:
    """Such as `Nov. 30, 2026 09:12:07 CET`, as the active language writes it; `2026-11-30 09:12:07 CET` where none is
    active. What no calendar has is shown as the number.
    """
    try:
        there = dt.datetime.fromtimestamp(at, timezone.get_current_timezone())
    except (ValueError, OverflowError, OSError):
        return f"{at:.0f}"
    day = f"{there:%Y-%m-%d}" if get_language() is None else date_format(there, "DATE_FORMAT")
    return f"{day} {there:%H:%M:%S %Z}"
