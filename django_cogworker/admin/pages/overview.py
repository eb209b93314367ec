"""Overview: is all well? Counters, the longest queues, what ended in the last day and the last weeks, the server."""

from __future__ import annotations

import dataclasses
import heapq
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_cogworker import api
from django_cogworker.admin.charting import days_chart, hours_chart
from django_cogworker.admin.listing import one_of, query
from django_cogworker.admin.page import Context, Page
from django_cogworker.admin.pages.queue_actions import PAUSE, RESUME
from django_cogworker.models import Overview
from django_cogworker.templatetags.cogworker import cog_slots

#: So many queues are shown; the others are on their own page.
QUEUES = 15
#: Days of the chart, the first as it is chosen unless another is.
PERIODS = ("30", "7", "90", "182")


@dataclasses.dataclass(frozen=True, slots=True)
class Tile:
    """One number at the top, and the page that tells more."""

    label: Any
    number: int
    page: str = ""
    alarming: bool = False


class OverviewPage(Page):
    """The first page."""

    name = "overview"
    title = gettext_lazy("Overview")
    template = "cogworker/overview.html"
    model = Overview
    actions = (PAUSE, RESUME)

    def context(self, request: HttpRequest) -> Context:
        stats = api.Stats.now()
        processes = list(api.ProcessSet())
        longest = heapq.nlargest(QUEUES, stats.queues, key=lambda each: stats.queues[each])
        queues = api.queue_states(sorted(longest))
        return {
            "tiles": _tiles(stats),
            "workers": processes,
            "working": sum(not each.is_quiet for each in processes),
            "busy": sum(each.busy for each in processes),
            "slots": sum(map(cog_slots, processes)),
            "queues": queues,
            "more_queues": len(stats.queues) - len(queues),
            "slowest": max((each.latency for each in queues), default=0),
            "hours": hours_chart(
                _("The last 24 hours"),
                [(each.at, each.processed, each.failed) for each in api.throughput()],
            ),
            "redis": api.redis_facts(),
            **self._days(request),
        }

    def _days(self, request: HttpRequest) -> Context:
        if not hasattr(api, "History"):
            return {}
        period = one_of(request, "period", PERIODS)
        found = api.History().daily(int(period))
        return {
            "days": days_chart(
                _("Runs per day (UTC)"), [(each.date, each.success, each.failed) for each in found]
            ),
            "periods": [
                (each, query(request, period=each), each == period)
                for each in sorted(PERIODS, key=int)
            ],
        }


def _tiles(stats: api.Stats) -> list[Tile]:
    return [
        Tile(_("Enqueued"), stats.enqueued, "queue"),
        Tile(_("Scheduled"), stats.scheduled, "scheduled"),
        Tile(_("Retrying"), stats.retrying, "retry"),
        Tile(_("Dead"), stats.dead, "dead", alarming=stats.dead > 0),
        Tile(_("Processed"), stats.processed, "history"),
        Tile(_("Failed attempts"), stats.failed, "history"),
    ]
