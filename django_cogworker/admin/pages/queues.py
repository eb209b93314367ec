"""Queues: how long each is, how late, whether it is paused and who reads it."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest
from django.utils.translation import gettext_lazy

from django_cogworker import api
from django_cogworker.admin.listing import asked, cut
from django_cogworker.admin.page import Context
from django_cogworker.admin.pages.queue_actions import CLEAR, PAUSE, RESUME
from django_cogworker.admin.waiting.deeds import DELETE, MOVE
from django_cogworker.admin.waiting.page import JobsPage
from django_cogworker.api.shelf import Shelf
from django_cogworker.exceptions import InvalidQueueName
from django_cogworker.models import Queue

#: So many of the workers that read a queue are named.
MOST_READERS = 50


class QueuesPage(JobsPage):
    """All queues, and a page of each with its jobs. Rows of the table are `QueueState`, of the jobs `JobRecord`."""

    name = "queue"
    title = gettext_lazy("Queues")
    template = "cogworker/queues.html"
    above = "cogworker/includes/search.html"
    item_template = "cogworker/queue.html"
    model = Queue
    actions = (PAUSE, RESUME, CLEAR, MOVE, DELETE)
    filters = ("q", "class", "args", "jid", "tag")
    columns_name = "queue_jobs"

    def shelf(self, of: str) -> Shelf[Any]:
        try:
            return api.Queue(of)
        except InvalidQueueName as error:
            raise Http404(str(error)) from None

    def check_of(self, of: str) -> None:
        if of not in api.queue_names():
            raise Http404(f"There is no queue {of!r}.")

    def refreshes(self, request: HttpRequest) -> bool:
        # The list stays up to date whatever is searched; its names are the same ones.
        return request.path == self.url() or not self.stands_still(request)

    def context(self, request: HttpRequest) -> Context:
        wanted = asked(request, "q")
        names = api.queue_names()
        found = [each for each in names if wanted.casefold() in each.casefold()]
        shown, pager = cut(request, found)
        states = api.queue_states(shown)
        return {
            "q": wanted,
            "rows": self.rows(states),
            "pager": pager,
            "slowest": max((each.latency for each in states), default=0),
            "any": bool(names),
        }

    def item_context(self, request: HttpRequest, item: str) -> Context:
        jobs = self.jobs(request, of=item)
        (state,) = api.queue_states([item])
        readers = _readers(item)
        shown = readers[:MOST_READERS]
        return {
            **jobs,
            "queue": state,
            "readers": shown,
            "more_readers": len(readers) - len(shown),
        }


def _readers(name: str) -> list[api.Process]:
    return [
        each
        for each in api.ProcessSet()
        if name in each.info.get("queues", ()) or name in each.info.get("async_queues", ())
    ]
