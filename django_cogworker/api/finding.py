"""Where a job is."""

from __future__ import annotations

import dataclasses
from typing import Any

from django_cogworker.client.transport import current_transport, real_transport
from django_cogworker.features.asking import locate
from django_cogworker.features.base import Place
from django_cogworker.payload.codec import queue_of
from django_cogworker.store.scripted import text
from django_cogworker.store.search import Search
from django_cogworker.store.store import get_store

#: Seconds that a search goes on by default.
BUDGET = 2.0


@dataclasses.dataclass(frozen=True, slots=True)
class FoundJob:
    """What `find_job` found.

    `place`: `queue`, `schedule`, `retry`, `dead`, `worker` (fetched by it), or empty where it is nowhere
    or was not found. `state` is that of a tracked job, also after its end; of others empty. `at`: when it
    is due, when it died, or when its worker fetched it (epoch seconds). `payload` is there where the job
    itself was found. `looked_at`: so many entries were looked at; `everywhere` is false where the time was
    over before all had been.
    """

    jid: str
    place: str = ""
    state: str = ""
    queue: str = ""
    worker: str = ""
    at: float | None = None
    payload: dict[str, Any] | None = None
    looked_at: int = 0
    everywhere: bool = True

    def __bool__(self) -> bool:
        """Whether anything is known of the job."""
        return bool(self.place or self.state)


_PLACES = {
    "queued": "queue",
    "scheduled": "schedule",
    "retrying": "retry",
    "dead": "dead",
    "working": "worker",
}


def find_job(jid: str, *, budget: float = BUDGET) -> FoundJob:
    """Where the job is.

    Of a tracked job this is one look at its status. Others are looked for on all queues, among the jobs
    in progress and in the three sets, for `budget` seconds at the most: O(jobs). Raises redis-py's errors.
    """
    given: Any = jid
    if not isinstance(given, str) or not jid:
        raise ValueError(f"find_job() takes the jid of a job, not {jid!r}.")
    known = locate(jid)
    if known is not None:
        return _of_place(jid, known)
    return look_for(jid, budget)


def look_for(jid: str, budget: float) -> FoundJob:
    """Look for a job of which no feature knows the place."""
    if current_transport() is not real_transport():
        return _in_test_mode(jid)
    store = get_store()
    search = Search(store.client, store.keys, jid, budget)
    names: Any = store.client.smembers(store.keys.queues)
    found = search.everywhere(sorted(text(each) for each in names))
    if found is None:
        return FoundJob(jid, looked_at=search.looked_at, everywhere=search.in_time)
    return FoundJob(
        jid,
        found.where,
        "",
        queue_of(found.payload),
        found.worker,
        found.at,
        found.payload,
        search.looked_at,
        search.in_time,
    )


def _of_place(jid: str, known: Place) -> FoundJob:
    place = _PLACES.get(known.state, "")
    return FoundJob(jid, place, known.state, known.queue, known.worker, known.at)


def _in_test_mode(jid: str) -> FoundJob:
    jobs: list[dict[str, Any]] = getattr(current_transport(), "jobs", list)()
    for payload in jobs:
        if payload["jid"] == jid:
            place = "schedule" if "at" in payload else "queue"
            return FoundJob(jid, place, "", queue_of(payload), "", payload.get("at"), payload)
    return FoundJob(jid)
