"""What can be done with one job on its page.

The form carries where the job was seen, so that it is found again at once; what has moved on meanwhile is looked for,
and what somebody else was quicker with is left alone, and the message says so.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from django_cogworker import api
from django_cogworker.admin import permissions
from django_cogworker.admin.actions import Deed, Items, Outcome, Text
from django_cogworker.admin.listing import text_of
from django_cogworker.admin.page import Page
from django_cogworker.admin.wanted import named_queue
from django_cogworker.api.words import in_language
from django_cogworker.display.quantities import count
from django_cogworker.exceptions import InvalidQuery
from django_cogworker.features.moments import moment

#: Seconds that a job which has moved on is looked for.
BUDGET = 1.0
#: Minutes by which a job can be put off (a week), and what the form begins with.
MOST_MINUTES = 10_080
MINUTES = 5
#: What the forms carry beside the jid.
FIELDS = ("seen", "minutes", "to")


@dataclasses.dataclass(frozen=True, slots=True)
class _OfJob(Deed):
    """`question` has `%(job)s`."""

    question: Text = dataclasses.field(default="", kw_only=True)

    def asks(self, page: Page, request: HttpRequest, items: Items) -> dict[str, Any] | None:
        if not self.question:
            return None
        fields = [(each, text_of(request.POST, each)) for each in FIELDS]
        return {
            "question": self.question % {"job": ", ".join(items[:1])},
            "fields": [(name, value) for name, value in fields if value],
        }

    def perform(self, page: Page, request: HttpRequest, items: Items) -> Outcome:
        return self.carry_out(items[0], request.POST) if items and items[0] else Outcome(_NONE)

    def carry_out(self, jid: str, given: QueryDict) -> Outcome:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, slots=True)
class Moving(_OfJob):
    """Done by moving the job. `said` has `%(job)s`, `%(queue)s` and `%(at)s`."""

    kind: api.acting.Kind
    said: Text

    def carry_out(self, jid: str, given: QueryDict) -> Outcome:
        try:
            action = self._action(given)
        except InvalidQuery as error:
            return Outcome(str(error))
        sought = api.seek(jid, seen=text_of(given, "seen"), budget=BUDGET)
        if sought.sighting is None:
            return Outcome(_missing(sought))
        (verdict,) = api.AllJobs().act([sought.sighting], action)
        queue = action.queue or sought.sighting.record.queue
        words = {
            "job": jid,
            "queue": queue,
            "at": "" if action.at is None else moment(action.at),
            "why": in_language(verdict.reason),
        }
        if verdict:
            return Outcome(self.said % words, [jid])
        if verdict.outcome == "gone":
            return Outcome(_("Nothing was done: %(job)s has just moved on.") % words)
        return Outcome(_("Nothing was done with %(job)s: %(why)s.") % words)

    def _action(self, given: QueryDict) -> api.Action:
        if self.kind == "reschedule":
            return api.Action(self.kind, at=time.time() + 60 * _minutes(given))
        if self.kind == "move":
            queue = text_of(given, "to")
            if not queue:
                raise InvalidQuery(_("Name the queue to which it is to go."))
            return api.Action(self.kind, queue=named_queue(queue))
        return api.Action(self.kind)


@dataclasses.dataclass(frozen=True, slots=True)
class Cancelling(_OfJob):
    """Done by the feature that cancels."""

    force: bool = False

    def carry_out(self, jid: str, given: QueryDict) -> Outcome:
        answer = api.cancel(jid, force=self.force, budget=BUDGET)
        text = _ANSWERS[answer] % {"job": jid}
        return Outcome(text, [] if answer == "ended" else [jid])


_NONE = gettext_lazy("No job was named.")
_ANSWERS = {
    "removed": gettext_lazy("Cancelled: %(job)s. It had not begun, and is gone."),
    "asked": gettext_lazy(
        "Cancelled: %(job)s. The worker that has it, or comes to it, has been told."
    ),
    "ended": gettext_lazy("Nothing to do: %(job)s is over."),
}


def _minutes(given: QueryDict) -> int:
    """From one minute to a week."""
    try:
        return min(max(1, int(given.get("minutes", "")[:9])), MOST_MINUTES)
    except ValueError:
        raise InvalidQuery(_("Say in how many minutes it is to run.")) from None


def _missing(sought: api.SoughtJob) -> str:
    words = {"job": sought.jid}
    if sought.cursor is None:
        return _("Nothing was done: %(job)s does not wait any more.") % words
    text = ngettext(
        "Nothing was done: %(job)s was not found; %(number)s job was looked at in time.",
        "Nothing was done: %(job)s was not found among the %(number)s jobs looked at in time.",
        sought.looked_at,
    )
    return text % {**words, "number": count(sought.looked_at)}


ACTIONS: tuple[Deed, ...] = (
    Moving(
        name="retry",
        label=gettext_lazy("Run now"),
        about=gettext_lazy("Run now: the job %(item)s"),
        done=gettext_lazy("Put on its queue at once."),
        permission=permissions.RETRY_JOBS,
        kind="retry",
        said=gettext_lazy("%(job)s is on the queue %(queue)s."),
    ),
    Moving(
        name="reschedule",
        label=gettext_lazy("Reschedule"),
        about=gettext_lazy("Reschedule the job %(item)s"),
        done=gettext_lazy("Rescheduled."),
        permission=permissions.MOVE_JOBS,
        kind="reschedule",
        said=gettext_lazy("%(job)s is due at %(at)s."),
    ),
    Moving(
        name="move",
        label=gettext_lazy("Move"),
        about=gettext_lazy("Move the job %(item)s to another queue"),
        done=gettext_lazy("Moved to another queue."),
        permission=permissions.MOVE_JOBS,
        kind="move",
        said=gettext_lazy("%(job)s belongs to the queue %(queue)s now."),
    ),
    Moving(
        name="kill",
        label=gettext_lazy("Kill"),
        about=gettext_lazy("Kill the job %(item)s: put it among the dead"),
        done=gettext_lazy("Put among the dead."),
        permission=permissions.DELETE_JOBS,
        kind="kill",
        said=gettext_lazy("%(job)s is dead; it can be retried."),
        question=gettext_lazy("Put %(job)s among the dead? Nobody runs it until it is retried."),
    ),
    Moving(
        name="delete",
        label=gettext_lazy("Delete"),
        about=gettext_lazy("Delete the job %(item)s"),
        done=gettext_lazy("Deleted."),
        permission=permissions.DELETE_JOBS,
        kind="delete",
        said=gettext_lazy("%(job)s is deleted."),
        question=gettext_lazy("Delete %(job)s, with the record of its attempts and its status?"),
        destroys=True,
    ),
    Cancelling(
        name="cancel",
        label=gettext_lazy("Cancel"),
        about=gettext_lazy("Cancel the job %(item)s"),
        done=gettext_lazy("Cancelled."),
        permission=permissions.DELETE_JOBS,
        question=gettext_lazy(
            "Cancel %(job)s? One that waits is gone; one that runs is asked to end."
        ),
        destroys=True,
    ),
    Cancelling(
        name="force",
        label=gettext_lazy("Cancel by force"),
        about=gettext_lazy("Cancel by force: the job %(item)s"),
        done=gettext_lazy("Cancelled by force."),
        permission=permissions.DELETE_JOBS,
        question=gettext_lazy(
            "Cancel %(job)s by force? Where it runs it is interrupted, whatever it is doing."
        ),
        destroys=True,
        force=True,
    ),
)

#: Which of them a job in each place is offered.
OFFERED: dict[str, tuple[str, ...]] = {
    "queue": ("move", "kill", "cancel", "delete"),
    "schedule": ("retry", "reschedule", "move", "kill", "cancel", "delete"),
    "retry": ("retry", "reschedule", "move", "kill", "cancel", "delete"),
    "dead": ("retry", "move", "delete"),
    "worker": ("cancel", "force"),
}
