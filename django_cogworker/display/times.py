"""Moments for people: a `<time>` element that a script writes anew in the zone of whoever looks.

Without the script the text is in Django's current time zone.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, Literal

from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import get_current_timezone

from django_cogworker.display.quantities import DASH

Form = Literal["datetime", "time"]


def moment(epoch: Any) -> datetime | None:
    """That many seconds after the epoch, or `None` where it is no moment that a calendar has."""
    if isinstance(epoch, bool) or not isinstance(epoch, (int, float)):
        return None
    try:
        return datetime.fromtimestamp(epoch, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def time_text(epoch: Any, form: Form = "datetime") -> str:
    """In Django's current time zone, the date as the language writes it, as plain text."""
    at = moment(epoch)
    if at is None:
        return DASH
    there = at.astimezone(get_current_timezone())
    if form == "time":
        return f"{there:%H:%M}"
    return f"{date_format(there, 'SHORT_DATE_FORMAT')} {there:%H:%M:%S}"


def day_text(day: str) -> str:
    """A day such as `2026-11-30` as the language writes it."""
    return str(date_format(date.fromisoformat(day), "SHORT_DATE_FORMAT"))


def time_tag(epoch: Any, form: Form = "datetime") -> SafeString | str:
    """The element, or a dash."""
    at = moment(epoch)
    if at is None:
        return DASH
    iso = at.isoformat(timespec="seconds").replace("+00:00", "Z")
    text = time_text(epoch, form)
    return format_html('<time datetime="{}" data-cog-time="{}">{}</time>', iso, form, text)
