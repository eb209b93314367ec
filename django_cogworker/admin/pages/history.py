"""History: every run that is kept, looked through on the server."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from django_cogworker import api
from django_cogworker.admin.listing import Pager, asked, one_of, query
from django_cogworker.admin.page import Context, Page
from django_cogworker.exceptions import InvalidQuery
from django_cogworker.models import History

PAGE_SIZE = 25
STATUSES = ("all", "success", "failed")
ORDERS = ("newest", "oldest")


class HistoryPage(Page):
    """Runs by the time of their end. Rows of the table are `HistoryEntry`."""

    name = "history"
    title = gettext_lazy("History")
    template = "cogworker/history.html"
    above = "cogworker/includes/history_filters.html"
    model = History
    needs = "History"

    def refreshes(self, request: HttpRequest) -> bool:
        # What was looked for stays where it is; only the newest runs come in by themselves.
        return not any(asked(request, each) for each in ("cursor", "q", "class", "jid", "order"))

    def context(self, request: HttpRequest) -> Context:
        status = one_of(request, "status", STATUSES)
        order = one_of(request, "order", ORDERS)
        wanted: dict[str, Any] = {
            "status": None if status == "all" else status,
            "job_class": asked(request, "class"),
            "jid": asked(request, "jid"),
            "text": asked(request, "q"),
            "oldest_first": order == "oldest",
            "limit": PAGE_SIZE,
        }
        cursor = asked(request, "cursor")
        try:
            found = api.History().search(cursor=cursor or None, **wanted)
        except InvalidQuery:  # a cursor that somebody wrote by hand
            cursor, found = "", api.History().search(**wanted)
        narrow = bool(wanted["job_class"] or wanted["jid"] or wanted["text"])
        return {
            "status": status,
            "order": order,
            "q": wanted["text"],
            "job_class": wanted["job_class"],
            "jid": wanted["jid"],
            "without_jid": query(request, jid=None, cursor=None),
            "statuses": [(each, LABELS[each]) for each in STATUSES],
            "orders": [(each, LABELS[each]) for each in ORDERS],
            "rows": self.rows(found.entries),
            "found": found,
            "narrow": narrow,
            "is_part": narrow and found.cursor and len(found.entries) < PAGE_SIZE,
            "pager": Pager(
                first=query(request, cursor=None) if cursor else "",
                next=query(request, cursor=found.cursor) if found.cursor else "",
            ),
        }


LABELS = {
    "all": gettext_lazy("All"),
    "success": gettext_lazy("Succeeded"),
    "failed": gettext_lazy("Failed"),
    "newest": gettext_lazy("Newest first"),
    "oldest": gettext_lazy("Oldest first"),
}
