"""Job classes: how often each ran in the last day, how often it failed, how long it took and waited."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_cogworker import api
from django_cogworker.admin.charting import durations_chart, hours_chart
from django_cogworker.admin.listing import asked, cut
from django_cogworker.admin.page import Context, Page
from django_cogworker.models import JobClass

#: Each costs 25 small reads, so fewer a page than elsewhere.
PAGE_SIZE = 25


class JobClassesPage(Page):
    """The classes that ran in the last day. Rows of the table are `ClassStats`."""

    name = "jobclass"
    title = gettext_lazy("Job classes")
    template = "cogworker/classes.html"
    above = "cogworker/includes/search.html"
    item_template = "cogworker/class.html"
    interval = 30
    model = JobClass
    needs = "class_stats"

    def context(self, request: HttpRequest) -> Context:
        wanted = asked(request, "q")
        names = api.class_names()
        shown, pager = cut(
            request, [each for each in names if wanted.casefold() in each.casefold()], PAGE_SIZE
        )
        return {
            "q": wanted,
            "rows": self.rows(api.class_stats(shown)),
            "pager": pager,
            "any": bool(names),
        }

    def item_context(self, request: HttpRequest, item: str) -> Context:
        hours = api.class_hours(item)
        runs = hours_chart(
            _("Runs by the hour"),
            [(each.at, each.runs - each.failures, each.failures) for each in hours],
        )
        return {
            "stats": api.percentiles(item),
            "charts": [
                runs,
                durations_chart(
                    _("Run time that 95 % of the runs did not exceed"),
                    _("Run time"),
                    [(each.at, each.seconds.p95) for each in hours],
                ),
                durations_chart(
                    _("Waiting time that 95 % of the jobs did not exceed"),
                    _("Waiting time"),
                    [(each.at, each.wait.p95) for each in hours],
                ),
            ],
        }
