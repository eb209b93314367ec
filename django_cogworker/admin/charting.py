"""The charts that several pages show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from django_cogworker.display.charts import Bar, Chart, Series
from django_cogworker.display.quantities import count, duration
from django_cogworker.display.times import Form, day_text, time_tag, time_text


def hours_chart(title: str, hours: Iterable[tuple[int, int, int]], form: Form = "time") -> Chart:
    """Of each hour, or a few: when it began, how many runs succeeded, how many attempts failed."""
    bars = [Bar(time_tag(at, form), time_text(at, form), (good, bad)) for at, good, bad in hours]
    return Chart(title, _("Hour"), _good_and_bad(), bars, count)


def days_chart(title: str, days: Iterable[tuple[str, int, int]]) -> Chart:
    """The same of each day."""
    bars = [Bar(day_text(date), day_text(date), (good, bad)) for date, good, bad in days]
    return Chart(title, _("Day"), _good_and_bad(), bars, count)


def percentiles_chart(title: str, hours: Iterable[tuple[int, Any]], form: Form = "time") -> Chart:
    """Of each hour, or a few: when it began, and the durations that 50, 95 and 99 % did not exceed (`Percentiles`)."""
    bars = [
        Bar(time_tag(at, form), time_text(at, form), (each.p50, each.p95, each.p99))
        for at, each in hours
    ]
    series = [Series("50 %", "cog-half"), Series("95 %", "cog-plain"), Series("99 %", "cog-few")]
    return Chart(title, _("Begin"), series, bars, duration, nested=True)


def _good_and_bad() -> list[Series]:
    return [Series(_("Processed"), "cog-ok"), Series(_("Failed"), "cog-bad")]
