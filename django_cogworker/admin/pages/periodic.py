"""Periodic: when each entry is due, what became of its last slots, and the means to steer it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_cogworker import api
from django_cogworker.admin import permissions
from django_cogworker.admin.actions import Action, Items, Outcome, Text
from django_cogworker.admin.listing import asked, cut
from django_cogworker.admin.page import Context, Page
from django_cogworker.exceptions import CogworkerError, UnknownPeriodicEntry
from django_cogworker.models import Periodic

#: So many of the next slots are told.
NEXT = 10


def _entries(items: Items) -> list[Any]:
    found = []
    for each in items:
        try:
            found.append(api.PeriodicSet()[each])
        except UnknownPeriodicEntry:
            continue
    return found


def _each(verb: str, done: Text, nothing: Text) -> Callable[[Items], Outcome]:
    def carry_out(items: Items) -> Outcome:
        changed = [each.name for each in _entries(items) if getattr(each, verb)()]
        return Outcome(
            (done if changed else nothing) % {"items": ", ".join(changed or items)}, changed
        )

    return carry_out


def _run_now(items: Items) -> Outcome:
    jids: dict[str, str] = {}
    for each in _entries(items):
        try:
            jid = each.run_now()
        except CogworkerError as error:
            return Outcome(
                _("%(item)s could not be enqueued: %(error)s")
                % {"item": each.name, "error": str(error)},
                list(jids),
            )
        if jid is not None:
            jids[each.name] = jid
    if not jids:
        text = _(
            "Nothing was enqueued: there is no such entry, or its job is unique and one waits."
        )
        return Outcome(text)
    told = ", ".join(f"{name} ({jid})" for name, jid in jids.items())
    return Outcome(_("Enqueued: %(items)s.") % {"items": told}, list(jids))


class PeriodicPage(Page):
    """The entries of this project. Rows of the table are `PeriodicState`."""

    name = "periodic"
    title = gettext_lazy("Periodic")
    template = "cogworker/periodic.html"
    above = "cogworker/includes/search.html"
    item_template = "cogworker/periodic_entry.html"
    interval = 15
    model = Periodic
    needs = "PeriodicSet"
    actions = (
        Action(
            name="run",
            label=gettext_lazy("Run now"),
            about=gettext_lazy("Run now: %(item)s"),
            done=gettext_lazy("Run out of turn."),
            permission=permissions.STEER_PERIODIC,
            carry_out=_run_now,
        ),
        Action(
            name="disable",
            label=gettext_lazy("Disable"),
            about=gettext_lazy("Disable %(item)s"),
            done=gettext_lazy("Disabled."),
            permission=permissions.STEER_PERIODIC,
            carry_out=_each(
                "disable",
                gettext_lazy("Disabled: %(items)s. It is not enqueued until it is enabled again."),
                gettext_lazy("Nothing to do: %(items)s is disabled already, or no entry."),
            ),
        ),
        Action(
            name="enable",
            label=gettext_lazy("Enable"),
            about=gettext_lazy("Enable %(item)s"),
            done=gettext_lazy("Enabled."),
            permission=permissions.STEER_PERIODIC,
            carry_out=_each(
                "enable",
                gettext_lazy("Enabled: %(items)s."),
                gettext_lazy("Nothing to do: %(items)s is enabled already, or no entry."),
            ),
        ),
    )

    def context(self, request: HttpRequest) -> Context:
        wanted = asked(request, "q")
        every = list(api.PeriodicSet())
        shown, pager = cut(request, [each for each in every if not wanted or _fits(each, wanted)])
        known = {each.name for each in every}
        published = api.PeriodicSet().published()
        return {
            "q": wanted,
            "rows": self.rows(api.PeriodicSet().states(shown)),
            "pager": pager,
            "any": bool(every),
            "unknown": sorted(set(published) - known),
            "unpublished": bool(every) and not published,
        }

    def item_context(self, request: HttpRequest, item: str) -> Context:
        try:
            entry = api.PeriodicSet()[item]
        except UnknownPeriodicEntry as error:
            raise Http404(str(error)) from None
        (state,) = api.PeriodicSet().states([entry])
        return {"state": state, "next_runs": entry.next_runs(NEXT), "ledger": entry.ledger()}


def _fits(entry: Any, wanted: str) -> bool:
    """What is masked is not looked into, so that nobody finds it out by trying."""
    words = f"{entry.name}\n{entry.job}\n{entry.cron}\n{entry.arguments}"
    return wanted.casefold() in words.casefold()
