"""Moments for people: epoch seconds as text in the time zone that counts for them."""

from __future__ import annotations

import datetime as dt

from django.utils import timezone


def moment(at: float) -> str:
    """Such as `2026-11-30 09:12:07 CET`. What no calendar has is shown as the number."""
    try:
        there = dt.datetime.fromtimestamp(at, timezone.get_current_timezone())
    except (ValueError, OverflowError, OSError):
        return f"{at:.0f}"
    return f"{there:%Y-%m-%d %H:%M:%S %Z}"
