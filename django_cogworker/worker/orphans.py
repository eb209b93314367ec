"""What becomes of the jobs of a dead worker.

* It had run and failed, and only its set could not be written to: it goes there now.
* It had not started: innocent; back to the front of its queue as it is.
* It may run at most once, and had started: buried.
* It had started: it may have killed its worker. The first time it goes back to the front; from the
second time it waits a while and then runs alone, so that it takes no neighbours along; beyond
`COGWORKER_MAX_ORPHANINGS` it is buried.
* The whole host went down: that does not count against its jobs, unless it happens again and again:
  a container that its job killed may come back on another host under its name, or on one of its own.

The counts travel in the payload (`orphanings`, `host_restarts`) and are dropped when the job gets to
an end of its own.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any, Literal

from django_cogworker.exceptions import JobFailedError, JobOrphanedError, UnparseablePayload
from django_cogworker.features.asking import failure_fields
from django_cogworker.payload import unparseable
from django_cogworker.payload.codec import decode_on, encode
from django_cogworker.payload.failure import add_failure
from django_cogworker.payload.job import priority_of
from django_cogworker.store.values import Filed, Held

#: Seconds that a job waits from the second time on: this, and three times as long each further time.
FIRST_WAIT = 5.0

Fate = Literal["front", "schedule", "retry", "dead"]


@dataclasses.dataclass(frozen=True, slots=True)
class Orphan:
    """A job of a dead worker and its fate. `job`, as it will be stored, is `None` for what is no job; `error` is there
    when it is buried; `ran`: it had failed already, and only that had not been filed.
    """

    ticket: int
    queue: str
    fate: Fate
    payload: bytes
    priority: int = 0
    delay: float = 0.0
    job: dict[str, Any] | None = None
    error: JobOrphanedError | JobFailedError | None = None
    ran: bool = False


def count_of(payload: dict[str, Any], name: str = "orphanings") -> int:
    """How often the job was running when its worker died."""
    count = payload.get(name, 0)
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0


def runs_alone(payload: dict[str, Any]) -> bool:
    """Whether the job is under suspicion and must not run beside others."""
    return count_of(payload) >= 2


def judge(held: Held, *, started: bool, counts: bool, limit: int, reason: str) -> Orphan:
    """The fate of one job. `counts`: whether the death may be the job's doing; `reason` tells how
    the worker died.

    Whether an at-most-once job had started is told by its mark in Redis alone.
    """
    ticket, queue, raw = held.ticket, held.queue, held.payload
    if held.filed is not None:
        return _filed(ticket, queue, held.filed)
    try:
        job = decode_on(queue, raw)
    except UnparseablePayload:
        return Orphan(ticket, queue, "front", raw)  # whoever fetches it next buries it properly
    priority = priority_of(job)
    if not (held.marked if job.get("at_most_once") else started):
        return Orphan(ticket, queue, "front", raw, priority, job=job)
    if job.get("at_most_once"):
        why = f"The worker died while this at-most-once job was running ({reason}); it is not run again."
        return _buried(ticket, queue, job, JobOrphanedError(why))
    restarts = count_of(job, "host_restarts")
    if not counts and restarts < limit:
        job = {**job, "host_restarts": restarts + 1}
        return Orphan(ticket, queue, "front", encode(job), priority, job=job)
    count = count_of(job) + 1
    if count > limit:
        why = f"The worker died {count} times while this job was running (the last time: {reason})."
        return _buried(ticket, queue, job, JobOrphanedError(why))
    job = {**job, "orphanings": count}
    if count == 1:
        return Orphan(ticket, queue, "front", encode(job), priority, job=job)
    delay = FIRST_WAIT * 3 ** (count - 2)
    return Orphan(ticket, queue, "schedule", encode(job), priority, delay, job=job)


def _filed(ticket: int, queue: str, filed: Filed) -> Orphan:
    raw = filed.payload
    try:
        job = decode_on(queue, raw)
    except UnparseablePayload:
        return Orphan(ticket, queue, filed.place, raw, delay=filed.at, ran=True)
    error = None
    if filed.place == "dead" and job["class"] != unparseable.CLASS:
        error = JobFailedError(str(job.get("error_message", "")))
    return Orphan(ticket, queue, filed.place, raw, delay=filed.at, job=job, error=error, ran=True)


def _buried(ticket: int, queue: str, job: dict[str, Any], error: JobOrphanedError) -> Orphan:
    record = dict(job)
    add_failure(record, error, time.time())
    record.update(failure_fields(record, error))
    record.pop("enqueued_at", None)
    return Orphan(ticket, queue, "dead", encode(record), job=record, error=error)
