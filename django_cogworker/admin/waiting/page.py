"""A page with jobs that wait: part by part, or those that match, with all that can be done with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from django_cogworker import api
from django_cogworker.admin import columns
from django_cogworker.admin.listing import Pager, asked, query
from django_cogworker.admin.page import Context, Further, Page
from django_cogworker.admin.waiting import bulk
from django_cogworker.admin.waiting.deeds import JobDeed
from django_cogworker.admin.waiting.filters import LABELS, Field, asked_for, criteria_of
from django_cogworker.api.shelf import Shelf
from django_cogworker.exceptions import InvalidQuery

PAGE_SIZE = 25
#: Seconds that a look for what matches goes on.
BUDGET = 0.2
#: So many queues are proposed where one is asked for.
MOST_QUEUES = 200


class JobsPage(Page):
    """Derive from it, and say where the jobs are."""

    #: What can be asked for; see `filters.NAMES`.
    filters: ClassVar[Sequence[str]] = ()
    #: By this name apps add columns to the table of jobs; empty: the page's.
    columns_name: ClassVar[str] = ""

    def shelf(self, of: str) -> Shelf[Any]:
        """Where the jobs are; `of` is the queue, where the page is about one. Raises `Http404`."""
        raise NotImplementedError

    def check_of(self, of: str) -> None:
        """Raise `Http404` where a request names a thing that the page does not have: it would stand in the log."""
        if of:
            raise Http404(f"{of!r} is nothing on this page.")

    def further(self) -> Sequence[Further]:
        return (("step/", self.answer_step, "step", require_POST),)

    def answer_step(self, request: HttpRequest) -> HttpResponse:
        return bulk.go_on(request, self)

    @property
    def act_url(self) -> str:
        return self.url("act")

    def job_deed(self, name: str) -> JobDeed:
        """Raises `Http404`."""
        found = self.action(name)
        if not isinstance(found, JobDeed):
            raise Http404(f"{name!r} is nothing that is done with jobs.")
        return found

    def stands_still(self, request: HttpRequest) -> bool:
        """Whether somebody looks for something: then nothing moves by itself."""
        return any(asked(request, each) for each in ("cursor", *self.filters))

    def jobs(self, request: HttpRequest, of: str = "") -> Context:
        """What the templates of the list get."""
        shelf = self.shelf(of)
        wanted = asked_for(request.GET, self.filters)
        cursor = asked(request, "cursor")
        try:
            found = _read(shelf, criteria_of(wanted), cursor)
        except InvalidQuery:  # a cursor that somebody wrote by hand
            cursor, found = "", _read(shelf, criteria_of(wanted), "")
        deeds = [each for each in self.actions if isinstance(each, JobDeed)]
        named = self.columns_name or self.name
        return {
            "rows": columns.rows(named, found.entries),
            "columns": columns.columns_of(named),
            "found": found,
            "wanted": wanted,
            "filter": urlencode(wanted),
            "fields": [Field(each, LABELS[each], wanted.get(each, "")) for each in self.filters],
            "offers": [each for each in deeds if self.may(request, each.permission)],
            "of": of,
            "known_queues": api.queue_names()[:MOST_QUEUES],
            "is_part": wanted and found.cursor and len(found.entries) < PAGE_SIZE,
            "pager": Pager(
                first=query(request, cursor=None) if cursor else "",
                next=query(request, cursor=found.cursor) if found.cursor else "",
            ),
        }


def _read(
    shelf: Shelf[Any], criteria: api.Criteria, cursor: str
) -> api.JobPage[Any] | api.JobMatches[Any]:
    if criteria:
        return shelf.search(criteria, cursor=cursor or None, limit=PAGE_SIZE, budget=BUDGET)
    return shelf.page(cursor or None, PAGE_SIZE)
