"""All queues at one moment, for those who look at many: two round trips, however many there are.

`Queue` asks for each number on its own, which is right for one queue and slow for a table of them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from typing import Any

import redis

from django_cogworker.api.replies import number
from django_cogworker.exceptions import UnparseablePayload
from django_cogworker.payload.codec import decode
from django_cogworker.store.scripted import text
from django_cogworker.store.store import get_store


@dataclasses.dataclass(frozen=True, slots=True)
class QueueState:
    """One queue. `latency`: seconds that the oldest job of its list has waited, 0 where none waits."""

    name: str
    size: int
    latency: float
    paused: bool


def queue_names() -> list[str]:
    """The names of all queues that ever held a job or were read by a worker, sorted. One round trip."""
    store = get_store()
    found: Any = store.client.smembers(store.keys.queues)
    return sorted(map(text, found))


def queue_states(names: Iterable[str]) -> list[QueueState]:
    """The queues of these names, in their order; one that does not exist is empty. One round trip, O(names)."""
    wanted = list(names)
    store = get_store()
    pipe: Any = store.client.pipeline(transaction=False)
    pipe.smembers(store.keys.paused)
    for each in wanted:
        keys = store.keys.queue(each)
        pipe.llen(keys.jobs)
        pipe.zcard(keys.priority)
        pipe.lindex(keys.jobs, -1)
    paused, *replies = pipe.execute(raise_on_error=False)
    if isinstance(paused, Exception):
        raise paused
    stopped, now = set(map(text, paused)), time.time()
    found = []
    for at, name in enumerate(wanted):
        waiting, prioritised, oldest = replies[3 * at : 3 * at + 3]
        size = number(waiting) + number(prioritised)
        found.append(QueueState(name, size, age_of(oldest, now), name in stopped))
    return found


def age_of(job: Any, now: float) -> float:
    """Seconds that this job, as it lies on a queue, has waited. What is no job counts as just arrived."""
    if isinstance(job, Exception) and not isinstance(job, redis.ResponseError):
        raise job
    if not isinstance(job, bytes):
        return 0.0
    try:
        payload = decode(job)
    except UnparseablePayload:
        return 0.0
    since = payload.get("enqueued_at", payload.get("created_at"))
    return max(0.0, now - since) if isinstance(since, (int, float)) else 0.0
