"""What can be done with jobs that wait.

A POST says with which: `item` has handles of single ones, `scope=all` means all that match `filter`, a query as the
page has it. `of` is the queue where the page is about one; `minutes` and `to` are for those that want them.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy

from django_cogworker import api, models
from django_cogworker.admin import permissions
from django_cogworker.admin.actions import Deed, Items, Outcome, Text
from django_cogworker.admin.audit import in_english
from django_cogworker.admin.page import Page
from django_cogworker.admin.waiting import bulk
from django_cogworker.admin.waiting.filters import asked_for, criteria_of
from django_cogworker.admin.wanted import named_queue
from django_cogworker.api.acting import Kind
from django_cogworker.api.words import in_language
from django_cogworker.display.quantities import count, minutes_text
from django_cogworker.exceptions import InvalidQuery

if TYPE_CHECKING:
    from django_cogworker.admin.waiting.page import JobsPage

#: A week.
MOST_MINUTES = 10_080
#: So many jobs a question shows.
SHOWN = 5


@dataclasses.dataclass(frozen=True, slots=True)
class JobDeed(Deed):
    """`asking` and `told` are in singular and plural, with `%(number)s`; all texts may have `%(minutes)s` and `%(to)s`,
    where the action `wants` them.
    """

    kind: Kind
    asking: Any
    told: Any
    wants: Literal["", "minutes", "to"] = ""

    @property
    def is_rare(self) -> bool:
        """Whether it is out of the way in a row: it wants something, or is done seldom."""
        return bool(self.wants) or self.kind == "kill"

    def fits(self, job: api.JobRecord) -> bool:
        """Whether to offer it for this job."""
        if self.kind == "delete":
            return True
        return not job.unparseable and (self.kind != "retry" or bool(job.queue))

    def asks(self, page: Page, request: HttpRequest, items: Items) -> dict[str, Any] | None:
        try:
            wish = self.wish(page, request)
        except InvalidQuery:
            return None  # there is nothing to do, and `perform` says why
        if wish.whole:
            return bulk.question(wish)
        if not self.destroys or not items:
            return None
        jobs = [each for each in _found(wish, items) if each is not None]
        return {
            "question": wish.text(self.asking, len(jobs)),
            "fields": wish.fields,
            "jobs": jobs[:SHOWN],
            "more_jobs": len(jobs[SHOWN:]),
        }

    def perform(self, page: Page, request: HttpRequest, items: Items) -> Outcome | HttpResponse:
        try:
            wish = self.wish(page, request)
        except InvalidQuery as error:
            return Outcome(str(error))
        if wish.whole:
            return bulk.begin(request, wish)
        if not items:
            return Outcome(_("Nothing was selected."))
        jobs = [each for each in _found(wish, items) if each is not None]
        verdicts = wish.shelf.act(jobs, wish.action)
        return Outcome(
            _summary(wish, verdicts, gone=len(items) - len(jobs)),
            [each.jid for each in verdicts if each],
            done=in_english(lambda: wish.text(self.done)),
            model=_model_of_jobs(),
        )

    def wish(self, page: Page, request: HttpRequest) -> Wish:
        """What a POST asks for. Raises `InvalidQuery` with what is wrong, `Http404`."""
        here, given = cast("JobsPage", page), request.POST
        of = given.get("of", "")
        here.check_of(of)
        asked = asked_for(QueryDict(given.get("filter", "")[:10_000]), here.filters)
        minutes, to = 0, ""
        if self.wants == "minutes":
            minutes = _minutes(given.get("minutes", ""))
        elif self.wants == "to":
            to = given.get("to", "").strip()
            if not to:
                raise InvalidQuery(_("Say to which queue."))
            to = named_queue(to)
        action = api.Action(
            self.kind, at=time.time() + minutes * 60 if self.wants == "minutes" else None, queue=to
        )
        whole = given.get("scope") == "all"
        return Wish(here, self, action, of, whole, criteria_of(asked), minutes, to, given)


@dataclasses.dataclass(frozen=True, slots=True)
class Wish:
    """Somebody's wish: what to do, where, and with which jobs."""

    page: JobsPage
    deed: JobDeed
    action: api.Action
    of: str
    whole: bool
    criteria: api.Criteria
    minutes: int
    to: str
    given: QueryDict

    @property
    def shelf(self) -> Any:
        return self.page.shelf(self.of)

    @property
    def fields(self) -> list[tuple[str, str]]:
        """What a question has to carry along."""
        names = ("of", "scope", "filter", "minutes", "to")
        return [(name, str(self.given[name])) for name in names if self.given.get(name)]

    def text(self, text: Text, number: int = 0, *, or_more: bool = False) -> str:
        """A text of a deed, filled in. Where there may be more it is in plural."""
        shown = _("%(number)s or more") % {"number": count(number)} if or_more else count(number)
        words = {"n": max(2, number) if or_more else number, "number": shown}
        return str(text % {**words, "minutes": minutes_text(self.minutes), "to": self.to})


def _minutes(text: str) -> int:
    """From 1 to a week; more is a week."""
    try:
        return min(max(1, int(text.strip()[:12])), MOST_MINUTES)
    except ValueError:
        raise InvalidQuery(_("Say in how many minutes: a whole number, at most 10,080.")) from None


def _found(wish: Wish, items: Items) -> Sequence[api.JobRecord | None]:
    try:
        found: Sequence[api.JobRecord | None] = wish.shelf.get(items)
    except InvalidQuery as error:
        raise Http404(str(error)) from None
    return found


def _summary(wish: Wish, verdicts: Sequence[api.Verdict], gone: int) -> str:
    """What became of them, in sentences."""
    outcomes = Counter(each.outcome for each in verdicts)
    gone += outcomes["gone"]
    told = [wish.text(wish.deed.told, outcomes["done"])] if outcomes["done"] else []
    if gone:
        text = ngettext(
            "%(number)s job was not there any more, or had changed.",
            "%(number)s jobs were not there any more, or had changed.",
            gone,
        )
        told.append(text % {"number": count(gone)})
    for reason, number in Counter(each.reason for each in verdicts if each.reason).items():
        text = ngettext(
            "%(number)s job was left alone: %(reason)s.",
            "%(number)s jobs were left alone: %(reason)s.",
            number,
        )
        told.append(text % {"number": count(number), "reason": in_language(reason)})
    return " ".join(told)


def _model_of_jobs() -> type[Model]:
    """Log entries of single jobs lead to their page, where there is one."""
    found: type[Model] = getattr(models, "Job", models.Overview)
    return found


RETRY = JobDeed(
    name="retry",
    label=gettext_lazy("Retry"),
    about=gettext_lazy("Retry job %(item)s"),
    done=gettext_lazy("Put on its queue again."),
    permission=permissions.RETRY_JOBS,
    kind="retry",
    asking=ngettext_lazy(
        "Put %(number)s job on its queue again?",
        "Put %(number)s jobs on their queues again?",
        "n",
    ),
    told=ngettext_lazy(
        "%(number)s job is on its queue again.",
        "%(number)s jobs are on their queues again.",
        "n",
    ),
)
RETRY_NOW = dataclasses.replace(
    RETRY, label=gettext_lazy("Retry now"), about=gettext_lazy("Retry now: job %(item)s")
)
RUN_NOW = dataclasses.replace(
    RETRY,
    name="run",
    label=gettext_lazy("Run now"),
    about=gettext_lazy("Run now: job %(item)s"),
    done=gettext_lazy("Put on its queue before its time."),
    asking=ngettext_lazy(
        "Put %(number)s job on its queue now?", "Put %(number)s jobs on their queues now?", "n"
    ),
    told=ngettext_lazy(
        "%(number)s job is on its queue.", "%(number)s jobs are on their queues.", "n"
    ),
)
DELETE = JobDeed(
    name="delete",
    label=gettext_lazy("Delete"),
    about=gettext_lazy("Delete job %(item)s"),
    done=gettext_lazy("Deleted."),
    permission=permissions.DELETE_JOBS,
    kind="delete",
    asking=ngettext_lazy("Delete %(number)s job?", "Delete %(number)s jobs?", "n"),
    told=ngettext_lazy("%(number)s job was deleted.", "%(number)s jobs were deleted.", "n"),
    destroys=True,
)
KILL = JobDeed(
    name="kill",
    label=gettext_lazy("Kill"),
    about=gettext_lazy("Kill job %(item)s: move it to the dead ones"),
    done=gettext_lazy("Moved to the dead ones."),
    permission=permissions.DELETE_JOBS,
    kind="kill",
    asking=ngettext_lazy(
        "Move %(number)s job to the dead ones?", "Move %(number)s jobs to the dead ones?", "n"
    ),
    told=ngettext_lazy(
        "%(number)s job is among the dead ones.", "%(number)s jobs are among the dead ones.", "n"
    ),
)
RESCHEDULE = JobDeed(
    name="reschedule",
    label=gettext_lazy("Reschedule"),
    about=gettext_lazy("Reschedule job %(item)s"),
    done=gettext_lazy("Due %(minutes)s after this."),
    permission=permissions.MOVE_JOBS,
    kind="reschedule",
    asking=ngettext_lazy(
        "Let %(number)s job be due in %(minutes)s?",
        "Let %(number)s jobs be due in %(minutes)s?",
        "n",
    ),
    told=ngettext_lazy(
        "%(number)s job is due in %(minutes)s.",
        "%(number)s jobs are due in %(minutes)s.",
        "n",
    ),
    wants="minutes",
)
MOVE = JobDeed(
    name="move",
    label=gettext_lazy("Move"),
    about=gettext_lazy("Move job %(item)s to another queue"),
    done=gettext_lazy("Moved to the queue %(to)s."),
    permission=permissions.MOVE_JOBS,
    kind="move",
    asking=ngettext_lazy(
        "Move %(number)s job to the queue %(to)s?",
        "Move %(number)s jobs to the queue %(to)s?",
        "n",
    ),
    told=ngettext_lazy(
        "%(number)s job belongs to the queue %(to)s now.",
        "%(number)s jobs belong to the queue %(to)s now.",
        "n",
    ),
    wants="to",
)
