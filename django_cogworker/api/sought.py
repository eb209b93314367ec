"""Finding the entry of one job, wherever it lies, to look at it or to act on it.

Who has just seen the job says where; a tracked job's status says in which place it is, and when it is due there. Only
where neither helps everything is gone through, for a limited time, with a cursor to go on.
"""

from __future__ import annotations

import dataclasses
import time
from functools import partial
from typing import Any

from django_cogworker.api.criteria import Criteria
from django_cogworker.api.everywhere import AllJobs, Sighting, among, among_newest, seen_again
from django_cogworker.exceptions import InvalidQuery
from django_cogworker.features.asking import locate
from django_cogworker.features.base import Place
from django_cogworker.store.search import NEAR
from django_cogworker.store.walks import cursor_at

#: Seconds that a search goes on by default, and those of them that are spent where the job should be.
BUDGET = 2.0
WHERE_IT_SHOULD_BE = 0.5

_ALIVE = ("queued", "scheduled", "working", "retrying", "dead")


@dataclasses.dataclass(frozen=True, slots=True)
class SoughtJob:
    """What `seek` found.

    `sighting`: the job, `None` where it was not found. `state`: what a tracked job's status says, else empty.
    `looked_at`: so many entries were looked at; `cursor`: where to go on, where the time was over before all had been.
    """

    jid: str
    sighting: Sighting | None = None
    state: str = ""
    looked_at: int = 0
    cursor: str | None = None

    def __bool__(self) -> bool:
        return self.sighting is not None


def seek(
    jid: str, *, seen: str = "", cursor: str | None = None, budget: float = BUDGET
) -> SoughtJob:
    """The entry of that job. `seen`: that of a `Sighting` from before.

    Two round trips where it is still where it was seen. A tracked job is looked for where its status says first. Else
    O(jobs), for `budget` seconds at the most. Raises `InvalidQuery`, and redis-py's errors.
    """
    given: Any = jid
    if not isinstance(given, str) or not jid:
        raise InvalidQuery(f"seek() takes the jid of a job, not {jid!r}.")
    place = locate(jid)
    state = "" if place is None else place.state
    if not cursor:
        found = seen_again(seen, jid) if seen else None
        if found is None and place is not None:
            found = _near(jid, place, budget * WHERE_IT_SHOULD_BE)
        if found is not None:
            return SoughtJob(jid, found, state)
        if state and state not in _ALIVE:
            return SoughtJob(jid, None, state)
    return _look(jid, state, AllJobs().search, cursor, budget)


def _look(jid: str, state: str, search: Any, cursor: str | None, budget: float) -> SoughtJob:
    """By a search, which finds those as well whose jids have this one in them."""
    deadline, looked_at = time.monotonic() + budget, 0
    while True:
        left = max(0.0, deadline - time.monotonic())
        part = search(Criteria(jid=jid), cursor=cursor, limit=1, budget=left)
        looked_at += part.looked_at
        for each in part.entries:
            if each.jid == jid:
                return SoughtJob(jid, each, state, looked_at)
        cursor = part.cursor
        if cursor is None or time.monotonic() >= deadline:
            return SoughtJob(jid, None, state, looked_at, cursor)


def _near(jid: str, place: Place, budget: float) -> Sighting | None:
    """Where the status says that it is."""
    if place.state == "working":
        return seen_again(f"worker/{place.worker}", jid)
    if place.state == "queued":
        label, cursor = f"queue:{place.queue}", None
        newest = among_newest(label, jid)
        if newest is not None:
            return newest
    elif place.state == "dead":
        label = "dead"  # the newest come first
        cursor = None if place.since is None else cursor_at(place.since + NEAR)
    elif place.state in ("scheduled", "retrying"):
        label = "schedule" if place.state == "scheduled" else "retry"
        cursor = None if place.at is None else cursor_at(place.at - NEAR)
    else:
        return None
    try:
        return _look(jid, place.state, partial(among, label), cursor, budget).sighting
    except InvalidQuery:  # a queue that cannot be, by other hands
        return None
