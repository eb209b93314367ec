"""History: every run that is kept, looked through and sorted on the server.

By the time of their end all of them can be gone through. In any other order as many of the newest as can be looked
through in a moment are sorted, of all or of a span of time, and the page says which those are.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy

from django_cogworker import api
from django_cogworker.admin.listing import Pager, asked, cut, one_of, page_number, query
from django_cogworker.admin.page import Context, Page
from django_cogworker.exceptions import ArgumentError, InvalidQuery
from django_cogworker.jobs.when import due_at
from django_cogworker.models import History

PAGE_SIZE = 25
STATUSES = ("all", "success", "failed")
ORDERS = ("newest", "oldest")
#: What can be asked for besides.
FIELDS = ("q", "class", "queue", "jid", "since", "until")
#: Other orders: what they sort by, and whether the highest comes first.
RANKINGS: dict[str, tuple[Any, bool]] = {
    "longest": ("seconds", True),
    "shortest": ("seconds", False),
    "waited": ("wait", True),
    "attempts": ("attempt", True),
    "class": ("job_class", False),
    "queue": ("queue", False),
    "error": ("error_class", False),
}


class HistoryPage(Page):
    """Runs by the time of their end, or ranked. Rows of the table are `HistoryEntry`."""

    name = "history"
    title = gettext_lazy("History")
    template = "cogworker/history.html"
    above = "cogworker/includes/history_filters.html"
    model = History
    needs = "History"

    def refreshes(self, request: HttpRequest) -> bool:
        # What was looked for stays where it is; only the newest runs come in by themselves.
        return not any(asked(request, each) for each in ("cursor", "order", *FIELDS))

    def context(self, request: HttpRequest) -> Context:
        status = one_of(request, "status", STATUSES)
        order = one_of(request, "order", (*ORDERS, *RANKINGS))
        fields = {each: asked(request, each) for each in FIELDS}
        wanted: dict[str, Any] = {
            "status": None if status == "all" else status,
            "job_class": fields["class"],
            "queue": fields["queue"],
            "jid": fields["jid"],
            "text": fields["q"],
            "since": _moment(fields["since"]),
            "until": _moment(fields["until"]),
        }
        narrow = any(wanted[each] for each in ("job_class", "queue", "jid", "text"))
        show = self._ranked if order in RANKINGS else self._searched
        return {
            **show(request, order, wanted, narrow),
            **fields,
            "job_class": fields["class"],
            "status": status,
            "order": order,
            "zone": timezone.get_current_timezone_name(),
            "without_jid": query(request, jid=None, cursor=None, p=None),
            "statuses": [(each, LABELS[each]) for each in STATUSES],
            "orders": [(each, LABELS[each]) for each in (*ORDERS, *RANKINGS)],
            "narrow": narrow,
            "spanned": wanted["since"] is not None or wanted["until"] is not None,
        }

    def _searched(
        self, request: HttpRequest, order: str, wanted: dict[str, Any], narrow: bool
    ) -> Context:
        """All runs, page by page."""
        wanted = {**wanted, "oldest_first": order == "oldest", "limit": PAGE_SIZE}
        cursor = asked(request, "cursor")
        try:
            found = api.History().search(cursor=cursor or None, **wanted)
        except InvalidQuery:  # a cursor that somebody wrote by hand
            cursor, found = "", api.History().search(**wanted)
        return {
            "rows": self.rows(found.entries),
            "found": found,
            "is_part": narrow and found.cursor and len(found.entries) < PAGE_SIZE,
            "pager": Pager(
                first=query(request, cursor=None) if cursor else "",
                next=query(request, cursor=found.cursor) if found.cursor else "",
            ),
        }

    def _ranked(
        self, request: HttpRequest, order: str, wanted: dict[str, Any], narrow: bool
    ) -> Context:
        """The newest, in another order."""
        by, descending = RANKINGS[order]

        def part(offset: int) -> api.HistoryRanking:
            return api.History().ranked(
                by, descending=descending, offset=offset, limit=PAGE_SIZE, **wanted
            )

        found = part(PAGE_SIZE * (page_number(request) - 1))
        shown, pager = cut(request, range(found.ranked), PAGE_SIZE)
        if shown and not found.entries:  # a part that is not there any more: the last one is
            found = part(shown[0])
        return {"rows": self.rows(found.entries), "found": found, "ranking": found, "pager": pager}


def _moment(text: str) -> float | None:
    """What a field for a time holds, in Django's current zone unless it names one; nothing where it is none."""
    try:
        given = datetime.fromisoformat(text)
        return due_at(timezone.make_aware(given) if timezone.is_naive(given) else given)
    except (ValueError, OverflowError, ArgumentError):
        return None


LABELS = {
    "all": gettext_lazy("All"),
    "success": gettext_lazy("Succeeded"),
    "failed": gettext_lazy("Failed"),
    "newest": gettext_lazy("Newest first"),
    "oldest": gettext_lazy("Oldest first"),
    "longest": gettext_lazy("Longest first"),
    "shortest": gettext_lazy("Shortest first"),
    "waited": gettext_lazy("Longest wait first"),
    "attempts": gettext_lazy("Most attempts first"),
    "class": gettext_lazy("By job class"),
    "queue": gettext_lazy("By queue"),
    "error": gettext_lazy("By error"),
}
