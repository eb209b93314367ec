"""Queues: how long each is, how late, whether it is paused and who reads it."""

from __future__ import annotations

from django.http import Http404, HttpRequest
from django.utils.translation import gettext_lazy

from django_cogworker import api
from django_cogworker.admin.listing import asked, cut
from django_cogworker.admin.page import Context, Page
from django_cogworker.admin.pages.queue_actions import CLEAR, PAUSE, RESUME
from django_cogworker.exceptions import InvalidQueueName
from django_cogworker.models import Queue

#: So many of the workers that read a queue are named.
MOST_READERS = 50


class QueuesPage(Page):
    """All queues, and a page of each. Rows of the table are `QueueState`."""

    name = "queue"
    title = gettext_lazy("Queues")
    template = "cogworker/queues.html"
    above = "cogworker/includes/search.html"
    item_template = "cogworker/queue.html"
    model = Queue
    actions = (PAUSE, RESUME, CLEAR)

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
        try:
            queue = api.Queue(item)
        except InvalidQueueName as error:
            raise Http404(str(error)) from None
        (state,) = api.queue_states([queue.name])
        readers = _readers(queue.name)
        shown = readers[:MOST_READERS]
        return {"queue": state, "readers": shown, "more_readers": len(readers) - len(shown)}


def _readers(name: str) -> list[api.Process]:
    return [
        each
        for each in api.ProcessSet()
        if name in each.info.get("queues", ()) or name in each.info.get("async_queues", ())
    ]
