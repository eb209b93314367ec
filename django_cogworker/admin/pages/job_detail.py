"""All that is known of one job: where it is, what happened to it, why it does not run."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_cogworker import api
from django_cogworker.admin.listing import asked, query
from django_cogworker.admin.page import Context
from django_cogworker.admin.pages.job_actions import MINUTES, MOST_MINUTES, OFFERED
from django_cogworker.api.words import word
from django_cogworker.display.arguments import arguments_in_lines, fields_of, value_lines
from django_cogworker.exceptions import InvalidQuery, NoResultError
from django_cogworker.payload.arguments import pack
from django_cogworker.payload.display import shown

#: Seconds that a job is looked for, and its runs in the history where it is nowhere.
BUDGET = 0.15
RUNS_BUDGET = 0.05
#: So many of its last runs are shown, and queues to choose from.
RUNS = 10
QUEUES = 200
#: Where more than this was looked at to find it, it is not looked for again and again.
NEAR = 2_000

WAITING = ("queue", "schedule", "retry")
#: States of a tracked job's status in which it should be somewhere.
ALIVE = ("queued", "scheduled", "working", "retrying")


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """A line of the timeline. `kind`: `good`, `bad`, `next` or nothing."""

    at: float
    text: str
    kind: str = ""


def job_context(request: HttpRequest, jid: str) -> Context:
    """What the template gets. In a number of round trips that does not depend on how much there is, where the job is
    tracked or was just seen; else it is looked for in a limited time.
    """
    sought = _sought(request, jid)
    seen = sought.sighting
    status = api.status(jid) if hasattr(api, "status") else None
    attempts = api.attempts(jid)
    runs = [] if seen is not None else _runs(jid)
    known = bool(seen or status or attempts or runs)
    context: Context = {
        "jid": jid,
        "known": known,
        "sought": sought,
        "look_on": query(request, cursor=sought.cursor, seen=None) if sought.cursor else "",
        "refreshes": known and sought.looked_at <= NEAR and not asked(request, "cursor"),
        "seen": seen,
        "record": seen and seen.record,
        "status": status,
        "attempts": attempts,
        "runs": runs,
        "timeline": _timeline(seen, status, attempts, runs),
        "state": _state(seen, status, attempts, runs),
        "now": time.time(),
        **_facts(seen, status, runs),
        **_told(status),
        **_reasons(jid, seen, status),
    }
    if seen is not None:
        context["arguments"] = arguments_in_lines(seen.record)
    return context | _offered(seen, status)


def _offered(seen: api.Sighting | None, status: Any) -> Context:
    """What can be done with it. One that should be there and was not seen can be cancelled at least."""
    offered: tuple[str, ...] = ()
    if seen is not None:
        offered = ("delete",) if seen.record.unparseable else OFFERED[seen.place]
    elif status is not None and status.state in ALIVE:
        offered = OFFERED["worker"]
    if not hasattr(api, "cancel"):
        offered = tuple(each for each in offered if each not in ("cancel", "force"))
    return {
        "offered": offered,
        "minutes": MINUTES,
        "most_minutes": MOST_MINUTES,
        "queues": api.queue_names()[:QUEUES] if "move" in offered else (),
    }


def _sought(request: HttpRequest, jid: str) -> api.SoughtJob:
    try:
        return api.seek(
            jid, seen=asked(request, "seen"), cursor=asked(request, "cursor"), budget=BUDGET
        )
    except InvalidQuery:  # a cursor that somebody wrote by hand
        return api.seek(jid, budget=BUDGET)


def _runs(jid: str) -> list[Any]:
    if not hasattr(api, "History"):
        return []
    return list(api.History().search(jid=jid, limit=RUNS, budget=RUNS_BUDGET).entries)


def _state(seen: Any, status: Any, attempts: Any, runs: Any) -> str:
    """A place, a state of the status, how the last run ended, or what became of the last failure."""
    if seen is not None:
        return str(seen.place)
    if status is not None:
        return str(status.state)
    if runs:
        return str(runs[0].outcome or runs[0].status)
    return str(attempts[0].outcome) if attempts else "unknown"


def _facts(seen: api.Sighting | None, status: Any, runs: list[Any]) -> Context:
    """Class and queue, from whoever knows them."""
    known: Any = seen.record if seen is not None else status or (runs[0] if runs else None)
    return {
        "job_class": known.job_class if known else "",
        "queue": known.queue if known else "",
        "attempt": known.attempt if known else None,
        "error_group": "" if seen is None else shown(str(seen.record.item.get("error_group", ""))),
    }


def _told(status: Any) -> Context:
    """What a tracked job says of itself."""
    if status is None:
        return {}
    context: Context = {"stored": fields_of(_packed(status.stored), status.job_class)}
    try:
        context["result"] = value_lines(_packed(status.result), status.job_class)
    except NoResultError as error:
        if status.state == "complete":
            context["no_result"] = (
                _("There is no result. %(why)s") % {"why": str(error)}
                if status.keeps_result
                else _("No result is kept: the class of this job has no result_ttl.")
            )
    return context


def _packed(value: Any) -> Any:
    """In wire form, as it came."""
    try:
        return pack(value, "value")
    except Exception:  # written by a newer version
        return {name: str(each) for name, each in value.items()} if type(value) is dict else "?"


def _reasons(jid: str, seen: api.Sighting | None, status: Any) -> Context:
    """Why it does not run, of one that waits."""
    if seen is not None:
        waits = seen.place in WAITING and not seen.record.unparseable
        return {"reasons": api.explain(seen).reasons} if waits else {}
    if status is None or status.state not in ALIVE:
        return {}
    return {"reasons": api.explain(jid, budget=0).reasons}


def _timeline(seen: Any, status: Any, attempts: Any, runs: Any) -> list[Event]:
    """What happened and what comes, in its order. What nobody wrote down is not in it."""
    told: list[tuple[float | None, str, str]] = []
    if seen is not None:
        record = seen.record
        told += [
            (record.created_at, _("created"), ""),
            (record.enqueued_at, _("enqueued"), ""),
            (record.retried_at, _("run again by hand"), ""),
        ]
        if not attempts:
            told.append((record.failed_at, _("failed for the first time"), "bad"))
        if seen.place in _NOW:
            told.append((seen.at, *_NOW[seen.place]()))
    for each in attempts:
        words = {"number": each.attempt, "error": each.error_class}
        told.append((each.failed_at, _("attempt %(number)s failed: %(error)s") % words, "bad"))
    for each in runs:
        words = {"number": each.attempt}
        if each.status == "success":
            told.append((each.finished_at, _("attempt %(number)s succeeded") % words, "good"))
        if each.started_at is not None:
            told.append((each.started_at, _("attempt %(number)s began") % words, ""))
    if seen is None and status is not None:
        words = {"state": word(status.state)}
        told.append((status.updated, _("last word of its status: %(state)s") % words, ""))
    events = [Event(at, text, kind) for at, text, kind in told if at is not None]
    return sorted(events, key=lambda each: each.at)


#: What the time of a job that was seen means in each place. Of one on a queue it is told already.
_NOW: dict[str, Any] = {
    "worker": lambda: (_("fetched by its worker"), "good"),
    "schedule": lambda: (_("next run"), "next"),
    "retry": lambda: (_("next attempt"), "next"),
    "dead": lambda: (_("died"), "bad"),
}
