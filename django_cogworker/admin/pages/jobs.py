"""Jobs: those of all places in one table, looked through on the server; and the page of each.

Without a search the table has the heads of all places, merged by how near each is to now. With one, the places are
gone through one after the other for a limited time.
"""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext_lazy

from django_cogworker import api
from django_cogworker.admin.listing import Pager, asked, one_of, query
from django_cogworker.admin.page import Context, Page
from django_cogworker.admin.pages.job_actions import ACTIONS
from django_cogworker.admin.pages.job_detail import job_context
from django_cogworker.exceptions import InvalidQuery
from django_cogworker.models import Job

PAGE_SIZE = 50
#: Seconds that one search goes on.
BUDGET = 0.2
#: A whole jid, as we make them.
_JID = re.compile(r"[0-9a-f]{24}")

STATES = ("all", "worker", "queue", "schedule", "retry", "dead")
FIELDS = ("anything", "job_class", "queue", "arguments", "error", "tag", "jid", "error_group")


class AllJobsPage(Page):
    """All jobs that wait, run or are dead, and a page of each. Rows of the table are `Sighting`."""

    name = "job"
    title = gettext_lazy("Jobs")
    template = "cogworker/jobs.html"
    above = "cogworker/includes/job_filters.html"
    item_template = "cogworker/job.html"
    model = Job
    actions = ACTIONS

    def refreshes(self, request: HttpRequest) -> bool:
        # What was looked for stays where it is.
        return not any(asked(request, each) for each in ("cursor", *FIELDS))

    def answer(self, request: HttpRequest) -> HttpResponse:
        for each in ("anything", "jid"):
            if _JID.fullmatch(asked(request, each).lower()):
                jid = asked(request, each).lower()
                return HttpResponseRedirect(self.url_of(self.name, jid))
        return super().answer(request)

    def context(self, request: HttpRequest) -> Context:
        state = one_of(request, "state", STATES)
        wanted = {each: asked(request, each) for each in FIELDS}
        cursor = asked(request, "cursor")
        jobs = api.AllJobs() if state == "all" else api.AllJobs([state])  # type: ignore[list-item]
        context: Context = {
            "state": state,
            "states": [(each, LABELS[each]) for each in STATES],
            "wanted": wanted,
            "more_wanted": any(wanted[each] for each in ("arguments", "error", "tag", "jid")),
            "without_group": query(request, error_group=None, cursor=None),
        }
        if cursor or any(wanted.values()):
            return context | self._found(request, jobs, wanted, cursor)
        heads = jobs.heads(PAGE_SIZE)
        total = sum(heads.sizes.values())
        # A place alone can be gone through from its beginning; all together have no order of their own.
        goes_on = state != "all" and total > len(heads.entries)
        return context | {
            "rows": self.rows(heads.entries),
            "total": total,
            "begin": query(request, cursor=BEGIN[state]) if goes_on else "",
        }

    def _found(
        self, request: HttpRequest, jobs: api.AllJobs, wanted: dict[str, str], cursor: str
    ) -> Context:
        criteria = api.Criteria(**wanted, masked=True)
        try:
            found = jobs.search(criteria, cursor=cursor, limit=PAGE_SIZE, budget=BUDGET)
        except InvalidQuery:  # a cursor that somebody wrote by hand
            cursor, found = "", jobs.search(criteria, limit=PAGE_SIZE, budget=BUDGET)
        goes_on = query(request, cursor=found.cursor) if found.cursor else ""
        return {
            "rows": self.rows(found.entries),
            "found": found,
            "is_part": bool(goes_on) and len(found.entries) < PAGE_SIZE,
            "pager": Pager(first=query(request, cursor=None) if cursor else "", next=goes_on),
        }

    def item_context(self, request: HttpRequest, item: str) -> Context:
        return job_context(request, item)


#: Cursors that begin in a place.
BEGIN = {each: f"{each}|" for each in STATES}

LABELS = {
    "all": gettext_lazy("All"),
    "worker": gettext_lazy("Running"),
    "queue": gettext_lazy("Enqueued"),
    "schedule": gettext_lazy("Scheduled"),
    "retry": gettext_lazy("Retrying"),
    "dead": gettext_lazy("Dead"),
}
