"""The charts that several pages show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from django_cogworker.display.charts import Bar, Chart, Series
from django_cogworker.display.quantities import count, duration
from django_cogworker.display.times import day_text, time_tag, time_text


def hours_chart(title: str, hours: Iterable[tuple[int, int, int]]) -> Chart:
    """Of each hour: when it began, how many runs succeeded, how many attempts failed."""
    bars = [
        Bar(time_tag(at, "time"), time_text(at, "time"), (good, bad)) for at, good, bad in hours
    ]
    return Chart(title, _("Hour"), _good_and_bad(), bars, count)


def days_chart(title: str, days: Iterable[tuple[str, int, int]]) -> Chart:
    """The same of each day."""
    bars = [Bar(day_text(date), day_text(date), (good, bad)) for date, good, bad in days]
    return Chart(title, _("Day"), _good_and_bad(), bars, count)


def durations_chart(title: str, label: str, hours: Iterable[tuple[int, Any]]) -> Chart:
    """Of each hour: when it began, and a number of seconds, or `None`."""
    bars = [Bar(time_tag(at, "time"), time_text(at, "time"), (value,)) for at, value in hours]
    return Chart(title, _("Hour"), [Series(label, "cog-plain")], bars, duration)


def _good_and_bad() -> list[Series]:
    return [Series(_("Processed"), "cog-ok"), Series(_("Failed"), "cog-bad")]
