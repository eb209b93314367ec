"""What people do on a page: pausing a queue, stopping a worker.

Every action goes the same way. A POST names the action, what it is for (once or several times) and the page to
go back to. Who lacks the permission gets 403. An action that destroys asks first, on a page of its own that
posts the same again with `confirmed`. Then it is done, a log entry is written for each thing that changed, and
the browser goes back to where it came from, filters and all, with a message that says what became of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.functional import Promise
from django.utils.http import url_has_allowed_host_and_scheme

from django_cogworker.admin.audit import note

if TYPE_CHECKING:
    from django_cogworker.admin.page import Page

Text = str | Promise
Items = Sequence[str]

#: More things than this in one request are no selection on a page.
MOST_ITEMS = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an action. `changed`: what to write log entries for; none where nothing changed. `done`: what
    stands in them, if not what the action says; `model`: whose content type they have, if not the page's.
    """

    message: Text
    changed: Items = ()
    done: Text = ""
    model: type[Model] | None = None

    @property
    def level(self) -> int:
        return messages.SUCCESS if self.changed else messages.WARNING


@dataclasses.dataclass(frozen=True, slots=True)
class Deed:
    """What all actions are. `about` is what a screen reader says, with `%(item)s`, and has the words
    of the label in it, by which people call the button who speak to their browser; `done` stands in the log entry.
    `destroys`: it cannot be undone.
    """

    name: str
    label: Text
    about: Text
    done: Text
    permission: str
    destroys: bool = dataclasses.field(default=False, kw_only=True)

    def about_item(self, item: str) -> str:
        return str(self.about) % {"item": item}

    def asks(self, page: Page, request: HttpRequest, items: Items) -> dict[str, Any] | None:
        """What the template of the question gets, at least a `question`; `None`: do it without one."""
        return None

    def perform(self, page: Page, request: HttpRequest, items: Items) -> Outcome | HttpResponse:
        """Do it. A response is shown as it is, with log entries and all else already done."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, slots=True)
class Action(Deed):
    """`question` makes an action ask first: it gets the items and returns what to ask."""

    carry_out: Callable[[Items], Outcome]
    question: Callable[[Items], Text] | None = None

    def asks(self, page: Page, request: HttpRequest, items: Items) -> dict[str, Any] | None:
        return None if self.question is None else {"question": self.question(items)}

    def perform(self, page: Page, request: HttpRequest, items: Items) -> Outcome | HttpResponse:
        return self.carry_out(items)


def act(page: Page, request: HttpRequest) -> HttpResponse:
    """The view behind all actions of a page; POST alone comes here."""
    action = page.action(request.POST.get("action", ""))
    if not page.may(request, action.permission):
        raise PermissionDenied
    items = request.POST.getlist("item")[:MOST_ITEMS]
    back = way_back(page, request)
    asked = None if "confirmed" in request.POST else action.asks(page, request, items)
    if asked is not None:
        return page.render(
            request,
            "cogworker/confirm.html",
            {
                "title": action.label,
                "action": action,
                "items": items,
                "address": page.url("act"),
                "back": back,
                "crumbs": page.crumbs(action.label),
                **asked,
            },
        )
    outcome = action.perform(page, request, items)
    if isinstance(outcome, HttpResponse):
        return outcome
    for item in outcome.changed:
        note(request, page, action, item, message=outcome.done, model=outcome.model)
    messages.add_message(request, outcome.level, str(outcome.message))
    return HttpResponseRedirect(back)


def find(actions: Sequence[Deed], name: Any) -> Deed:
    for each in actions:
        if each.name == name:
            return each
    raise Http404(f"There is no action {name!r} here.")


def way_back(page: Page, request: HttpRequest) -> str:
    """Where the request came from, if that is a page of this host; else the page itself."""
    back = request.POST.get("back", "")
    safe = back.startswith("/") and url_has_allowed_host_and_scheme(
        back, {request.get_host()}, require_https=request.is_secure()
    )
    return back if safe else page.url()
