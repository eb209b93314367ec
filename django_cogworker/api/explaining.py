"""Why a job is not running.

What can hold a job up is asked in order: whether it is over, runs, or is not due yet; the features (cancelled,
expired, a lock that another job has); the queue; the workers that read it; the job's class; its own history. Each
answer that is yes is a reason. A job that nothing holds up waits for its turn, which is a reason too.

For a tracked job this takes a constant number of round trips. Others are looked for first: see `find_job`.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_cogworker.api.everywhere import Sighting
from django_cogworker.api.finding import BUDGET, FoundJob, look_for
from django_cogworker.api.readers import Readers
from django_cogworker.api.words import word
from django_cogworker.client.transport import current_transport, real_transport
from django_cogworker.features.asking import locate, obstacles
from django_cogworker.features.base import Place, Reason
from django_cogworker.features.moments import moment
from django_cogworker.jobs.masking import masked_text
from django_cogworker.payload.failure import clean
from django_cogworker.store.search import Search
from django_cogworker.store.store import Store, get_store

WAITING = ("queued", "scheduled", "retrying")

_STATES = {
    "queue": "queued",
    "schedule": "scheduled",
    "retry": "retrying",
    "dead": "dead",
    "worker": "working",
    "": "unknown",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Explanation:
    """Where a job stands, and why.

    `state`: `queued`, `scheduled`, `retrying`, `working`, `dead`, another end of a tracked job (`complete`,
    `failed`, `cancelled`, `expired` …), or `unknown`. `reasons`: the one that decides first. `at`: when it is due,
    when it died, or since when it runs (epoch seconds). `looked_at` and `everywhere` as in `FoundJob`.
    """

    jid: str
    state: str
    reasons: tuple[Reason, ...]
    job_class: str = ""
    queue: str = ""
    worker: str = ""
    at: float | None = None
    looked_at: int = 0
    everywhere: bool = True

    @property
    def codes(self) -> list[str]:
        return [each.code for each in self.reasons]

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        found = dataclasses.asdict(self)
        found["reasons"] = [dataclasses.asdict(each) for each in self.reasons]
        return found


@dataclasses.dataclass(slots=True)
class _Case:
    """What is known of the job that is asked about."""

    jid: str
    state: str
    payload: dict[str, Any]
    queue: str
    worker: str = ""
    at: float | None = None
    since: float | None = None
    looked_at: int = 0
    everywhere: bool = True

    def explained(self, *reasons: Reason) -> Explanation:
        return Explanation(
            self.jid,
            self.state,
            reasons,
            str(self.payload.get("class", "")),
            self.queue,
            self.worker,
            self.at,
            self.looked_at,
            self.everywhere,
        )


def explain(jid: str | Sighting, *, budget: float = BUDGET) -> Explanation:
    """Why the job is not running, where it is, or how it ended. Raises redis-py's errors.

    Who has the job before him gives the `Sighting`; then nothing is looked for.
    Of a tracked job this takes at most seven round trips, whatever lies in Redis. Others are looked for, for
    `budget` seconds at the most: O(jobs). What it says of workers is as of their last beat.
    """
    case = _of_sighting(jid) if isinstance(jid, Sighting) else _of_jid(jid, budget)
    if current_transport() is not real_transport():
        return _in_test_mode(case)
    store = get_store()
    if case.state == "working":
        return _working(store, case)
    if case.state == "unknown":
        return case.explained(*_lost(store, case))
    if case.state not in WAITING:
        return case.explained(_over(case))
    return case.explained(*_waiting(store, case))


def _of_jid(jid: Any, budget: float) -> _Case:
    if not isinstance(jid, str) or not jid:
        raise ValueError(f"explain() takes the jid of a job, not {jid!r}.")
    place = locate(jid)
    return _of_place(jid, place) if place is not None else _of_search(look_for(jid, budget))


def _of_sighting(seen: Sighting) -> _Case:
    record = seen.record
    at = None if seen.place == "queue" else seen.at
    return _Case(seen.jid, _STATES[seen.place], record.item, record.queue, seen.worker, at, seen.at)


def _of_place(jid: str, place: Place) -> _Case:
    return _Case(jid, place.state, place.payload, place.queue, place.worker, place.at, place.since)


def _of_search(found: FoundJob) -> _Case:
    return _Case(
        found.jid,
        _STATES[found.place],
        found.payload or {},
        found.queue,
        found.worker,
        found.at,
        found.at,
        found.looked_at,
        found.everywhere,
    )


def _in_test_mode(case: _Case) -> Explanation:
    if case.state == "unknown":
        text = _("No such job waits in this test mode.")
        return case.explained(Reason("not_found", text, {"looked_at": 0, "everywhere": True}))
    if case.state not in (*WAITING, "working"):
        return case.explained(_over(case))
    return case.explained(
        Reason("test_mode", _("In this test mode it runs when the test says so."))
    )


def _working(store: Store, case: _Case) -> Explanation:
    found = Search(store.client, store.keys, case.jid, BUDGET).in_worker(case.worker)
    case.at = case.since if found is None else found.at
    if found is not None:
        case.payload = found.payload
    client: Any = store.client
    said = {"worker": case.worker, "since": case.at}
    words = {**said, "when": "?" if case.at is None else moment(case.at)}
    if client.exists(store.keys.process(case.worker)):
        text = _("It runs in worker %(worker)s since %(when)s.")
        return case.explained(
            Reason("running", text % words, said), *obstacles(case.payload, "working")
        )
    text = _(
        "It was running in worker %(worker)s, which does not beat any more; as soon as that is known to be dead "
        "another worker brings the job back."
    )
    return case.explained(Reason("worker_gone", text % words, said))


def _over(case: _Case) -> Reason:
    """It does not run by itself any more."""
    said: dict[str, Any] = {"how": case.state, "at": case.since}
    words = {"how": word(case.state), "when": "?" if case.since is None else moment(case.since)}
    for name in ("error_class", "error_message"):
        if name in case.payload:
            said[name] = words[name] = _told(case, name)
    if case.state == "complete":
        return Reason("over", _("It ended well at %(when)s.") % words, said)
    if case.state == "dead":
        text = _(
            "It failed for good at %(when)s and lies in the dead set, until somebody retries it."
        )
        return Reason("dead", text % words, said)
    return Reason("over", _("It is over since %(when)s: %(how)s.") % words, said)


def _lost(store: Store, case: _Case) -> list[Reason]:
    """Nothing was found but perhaps the record of its failed attempts."""
    client: Any = store.client
    last = client.lindex(store.keys.attempts(clean(case.jid, 64)), -1)
    reasons = []
    attempt = _attempt(last)
    if attempt is not None:
        words = {
            **attempt,
            "outcome": word(attempt["outcome"]),
            "when": moment(attempt["failed_at"]),
        }
        text = _(
            "Its last attempt that failed was number %(attempt)s at %(when)s: %(error_class)s (%(outcome)s)."
        )
        reasons.append(Reason("last_attempt", text % words, attempt))
    said = {"looked_at": case.looked_at, "everywhere": case.everywhere}
    if case.everywhere:
        text = _("It is on no queue, in no set and in no worker: it is over, or never was.")
    else:
        text = ngettext(
            "It was not found: %(looked_at)s job was looked at before the time was over.",
            "It was not found among the %(looked_at)s jobs that were looked at before the time was over.",
            case.looked_at,
        )
    return [*reasons, Reason("not_found", text % said, said)]


def _attempt(raw: bytes | None) -> dict[str, Any] | None:
    try:
        record = json.loads(raw or b"")
        return {
            "attempt": int(record["attempt"]),
            "failed_at": float(record["failed_at"]),
            "outcome": str(record["outcome"]),
            "error_class": str(record["error_class"]),
            "error_message": str(record["error_message"]),
        }
    except (ValueError, KeyError, TypeError):
        return None


def _waiting(store: Store, case: _Case) -> list[Reason]:
    readers = Readers(store, case.queue, str(case.payload.get("class", "")))
    is_due = case.state == "queued" or (case.at is not None and case.at <= readers.now)
    reasons = [] if is_due else [_not_due(case)]
    reasons += obstacles(case.payload, case.state)
    reasons += readers.obstacles()
    reasons += _suspicion(case.payload)
    if not is_due:
        return reasons
    if not reasons and case.state != "queued":
        said = {"due": case.at}
        text = _("It is due: a worker moves it to its queue within seconds.")
        return [Reason("due", text, said)]
    return [*reasons, *readers.turn(alone=bool(reasons))]


def _not_due(case: _Case) -> Reason:
    said: dict[str, Any] = {"until": case.at}
    words: dict[str, Any] = {"when": "?" if case.at is None else moment(case.at)}
    if case.state != "retrying":
        if case.at is None:
            return Reason("not_due", _("It waits in the scheduled set."), said)
        return Reason("not_due", _("It is not due before %(when)s.") % words, said)
    said["failures"] = case.payload.get("retry_count", 0)
    for name in ("error_class", "error_message"):
        said[name] = words[name] = _told(case, name)
    text = _("It failed (%(error_class)s) and is not tried again before %(when)s.")
    return Reason("not_due", text % words, said)


def _told(case: _Case, name: str) -> str:
    """A text of its last error as it may be shown: a reason is made for people, and for what prints it."""
    return masked_text(str(case.payload.get(name, "")), case.payload)


def _suspicion(payload: dict[str, Any]) -> list[Reason]:
    count = payload.get("orphanings")
    if isinstance(count, bool) or not isinstance(count, int) or count < 2:
        return []
    said = {"orphanings": count}
    text = _(
        "It was running each time a worker died (%(orphanings)s), so it runs alone: a worker first lets its other "
        "jobs end."
    )
    return [Reason("alone", text % said, said)]
