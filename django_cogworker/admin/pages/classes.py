"""Job classes: how often each ran in the last day, failed, how long it took and waited; and the week of each."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_cogworker import api
from django_cogworker.admin.charting import hours_chart, percentiles_chart
from django_cogworker.admin.listing import asked, cut, one_of, query
from django_cogworker.admin.page import Context, Page
from django_cogworker.display.times import Form
from django_cogworker.models import JobClass

#: Each costs 25 small reads, so fewer a page than elsewhere.
PAGE_SIZE = 25
#: Times that the page of a class tells of: hours, and how many of them make a bar.
PERIODS = {"day": (24, 1), "week": (168, 6)}
LABELS = {"day": gettext_lazy("The last 24 hours"), "week": gettext_lazy("The last 7 days")}


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
        period = one_of(request, "period", tuple(PERIODS))
        hours, every = PERIODS[period]
        times = api.class_times(item, hours, every)
        form: Form = "time" if every == 1 else "datetime"
        return {
            "stats": times.stats,
            "period": period,
            "period_label": LABELS[period],
            "periods": [
                (LABELS[each], query(request, period=each), each == period) for each in PERIODS
            ],
            "charts": [
                hours_chart(
                    _("Runs"),
                    [(each.at, each.runs - each.failures, each.failures) for each in times.hours],
                    form,
                ),
                percentiles_chart(
                    # xgettext:no-python-format
                    _("Run time that 50, 95 and 99 % of the runs did not exceed"),
                    [(each.at, each.seconds) for each in times.hours],
                    form,
                ),
                percentiles_chart(
                    # xgettext:no-python-format
                    _("Waiting time that 50, 95 and 99 % of the jobs did not exceed"),
                    [(each.at, each.wait) for each in times.hours],
                    form,
                ),
            ],
        }
