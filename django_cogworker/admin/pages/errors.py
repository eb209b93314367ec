"""Errors: failures that are the same, counted in groups, and the way to the jobs of each."""

from __future__ import annotations

import time

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_cogworker import api
from django_cogworker.admin.charting import hours_chart
from django_cogworker.admin.listing import asked, cut, one_of
from django_cogworker.admin.page import Context, Page
from django_cogworker.models import Error

PAGE_SIZE = 25
#: The whole table, which is bounded, is read at once.
MOST = 500
HOUR = 3600
ORDERS = ("last_seen", "last_day", "count", "first_seen")


class ErrorsPage(Page):
    """The groups of the last 30 days, and a page of each. Rows of the table are `ErrorGroup`."""

    name = "error"
    title = gettext_lazy("Errors")
    template = "cogworker/errors.html"
    above = "cogworker/includes/error_filters.html"
    item_template = "cogworker/error.html"
    interval = 15
    model = Error
    needs = "error_groups"

    def context(self, request: HttpRequest) -> Context:
        order, job_class = one_of(request, "order", ORDERS), asked(request, "class")
        found = api.error_groups(
            job_class=job_class or None,
            order=order,  # type: ignore[arg-type]
            limit=MOST,
        )
        shown, pager = cut(request, found.groups, PAGE_SIZE)
        return {
            "order": order,
            "orders": [(each, LABELS[each]) for each in ORDERS],
            "job_class": job_class,
            "rows": self.rows(shown),
            "total": found.total,
            "pager": pager,
        }

    def item_context(self, request: HttpRequest, item: str) -> Context:
        group = api.error_group(item)
        if group is None:
            return {"known": False, "refreshes": False}
        begin = (int(time.time() // HOUR) - len(group.hours) + 1) * HOUR
        hours = [(begin + HOUR * at, 0, count) for at, count in enumerate(group.hours)]
        return {"known": True, "group": group, "chart": hours_chart(_("The last 24 hours"), hours)}


LABELS = {
    "last_seen": gettext_lazy("Last seen first"),
    "last_day": gettext_lazy("Most in the last 24 hours first"),
    "count": gettext_lazy("Most in all first"),
    "first_seen": gettext_lazy("Newest first"),
}
