"""Where a fetched job goes, as a `Settlement` for the fetcher to carry out.

The one rule: a job that has run is never run again because something failed later. So a job that
did not start goes back to its queue; one that succeeded is acknowledged; one that failed goes where
`retries` decided. Where that failure cannot be encoded (a middleware put something into the payload
that JSON cannot hold) the job is *interrupted*: it is recorded as it was fetched, with the error
and a count, and tried again after a while, three times at the most.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from django_cogworker import clock
from django_cogworker.exceptions import InvalidPayload, UnparseablePayload
from django_cogworker.features.asking import failure_fields
from django_cogworker.jobs.masking import masked_text
from django_cogworker.jobs.options import retries_allowed
from django_cogworker.payload.codec import decode, decode_on, encode
from django_cogworker.payload.failure import (
    ATTEMPTS_TTL,
    MAX_ATTEMPTS,
    add_failure,
    attempt_record,
    clean,
    error_name,
    error_text,
)
from django_cogworker.payload.job import priority_of
from django_cogworker.payload.unparseable import wrap
from django_cogworker.store.keys import Keys
from django_cogworker.store.values import Disposition, Effect, Settlement
from django_cogworker.worker.hand import Unit
from django_cogworker.worker.retries import Decision

logger = logging.getLogger("django_cogworker")

#: What a job is known and found by; no middleware can change it in a fetched job.
VITAL_FIELDS = ("jid", "class", "queue")

#: A job whose class or format nobody knows here waits so long, again and again, up to the limit (seconds).
UNKNOWN_PAUSE = 30.0
UNKNOWN_LIMIT = 86_400.0

INTERRUPT_PAUSE = 30.0
MAX_INTERRUPTS = 3
#: From so many interruptions on, a job is longer than the time between deploys.
MANY_INTERRUPTIONS = 3


def finished(unit: Unit, effects: tuple[Effect, ...] = ()) -> Settlement:
    return Settlement(unit.ticket, "ack", counter="processed", effects=effects)


def dropped(unit: Unit) -> Settlement:
    """Acknowledged without being counted: somebody else has the job."""
    return Settlement(unit.ticket, "ack")


def given_back(unit: Unit, payload: bytes | None = None) -> Settlement:
    """To the front of its queue, unrun; the stored payload unless another is given."""
    return Settlement(
        unit.ticket, "front", payload or unit.payload, queue=unit.queue, priority=_priority(unit)
    )


def _priority(unit: Unit) -> int:
    try:
        return priority_of(decode(unit.payload))
    except UnparseablePayload:
        return 0


def unparseable(unit: Unit, error: BaseException) -> Settlement:
    wrapper = wrap(unit.payload, unit.queue, error)
    return Settlement(unit.ticket, "dead", encode(wrapper), counter="failed")


def waiting(unit: Unit, payload: dict[str, Any]) -> Settlement | None:
    """To the scheduled set for a while, without using up an attempt; `None` when it has waited long
    enough.
    """
    now = time.time()
    since = payload.get("unknown_since")
    if not isinstance(since, (int, float)) or isinstance(since, bool):
        since = now
    if now - since >= UNKNOWN_LIMIT:
        return None
    record = encode({**payload, "unknown_since": round(since, 6)})
    return Settlement(unit.ticket, "schedule", record, delay=UNKNOWN_PAUSE)


def postponed(unit: Unit, delay: float) -> Settlement:
    """To the scheduled set as it is: it cannot run here now."""
    return Settlement(unit.ticket, "schedule", unit.payload, delay)


def after_a_fault(unit: Unit, error: BaseException) -> Settlement:
    """Our own code failed with the job, which may have run: interrupted, as it was fetched."""
    try:
        record, decision = interrupted(unit, error, Decision("retrying"), time.time())
        disposition: Disposition = "retry" if decision.outcome == "retrying" else "dead"
        payload, delay = encode(record), decision.delay
    except Exception:
        logger.exception("A job cannot even be interrupted; it waits as it was fetched.")
        disposition, payload, delay = "retry", unit.payload, INTERRUPT_PAUSE
    return Settlement(unit.ticket, disposition, payload, delay, counter="failed")


def interrupted_by_stop(unit: Unit) -> tuple[Settlement, int]:
    """Back to the front of its queue because the worker stops; with the number of such
    interruptions.
    """
    try:
        payload = decode_on(unit.queue, unit.payload)
    except UnparseablePayload:
        return given_back(unit), 0
    count = payload.get("interruptions", 0)
    count = count + 1 if isinstance(count, int) else 1
    return given_back(unit, encode({**payload, "interruptions": count})), count


def attempt_effects(
    keys: Keys, record: dict[str, Any], error: BaseException, outcome: str, now: float
) -> tuple[Effect, Effect]:
    """Effects that keep the record of a failed attempt, among the last ones of its job: without the values of its
    arguments that are masked, since it may outlive the job.
    """
    key = keys.attempts(clean(str(record["jid"]), 64))
    entry = attempt_record(record, error, outcome, now, lambda text: masked_text(text, record))
    return Effect("append", key, (entry, MAX_ATTEMPTS)), Effect("expire", key, (ATTEMPTS_TTL,))


def _end_of_run(record: dict[str, Any]) -> None:
    """Drop what counts for one stay on a queue or one run: the job came to an end of its own."""
    record.pop("enqueued_at", None)
    record.pop("orphanings", None)
    record.pop("host_restarts", None)


def interrupted(
    unit: Unit, error: BaseException, decision: Decision, now: float
) -> tuple[dict[str, Any], Decision]:
    """The job as fetched, with the error, and where it goes now."""
    record = decode_on(unit.queue, unit.payload)
    _end_of_run(record)
    count = record.get("interrupted_count", 0)
    count = count + 1 if isinstance(count, int) else 1
    tries = record.get("retry_count", 0)
    tries = tries + 1 if isinstance(tries, int) else 1
    record.update(
        interrupted_count=count,
        retry_count=tries,
        error_class=error_name(error),
        error_message=error_text(error),
        failed_at=round(now, 6),
        **failure_fields(record, error),
    )
    if decision.outcome != "retrying":
        return record, decision
    if count > MAX_INTERRUPTS or tries > retries_allowed(record.get("retry")):
        return record, Decision("dead")
    return record, Decision("retrying", INTERRUPT_PAUSE * count)


class FailureSettler:
    """Turns failures into settlements."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def settle(
        self,
        unit: Unit,
        payload: dict[str, Any],
        error: BaseException,
        decision: Decision,
        effects: Sequence[Effect] = (),
    ) -> tuple[Settlement, Decision, dict[str, Any]]:
        """The settlement, the decision as carried out, and the payload as it will be stored. Never
        raises.
        """
        now = clock.now()
        record = dict(payload)
        try:
            add_failure(record, error, now)
            record.update(failure_fields(record, error))
            _end_of_run(record)
            encoded = encode(record)
        except InvalidPayload as problem:
            logger.error(
                "The failure of job %s cannot be recorded as it is (%s); it is interrupted instead.",
                payload.get("jid"),
                problem,
                extra={"jid": payload.get("jid"), "job_class": payload.get("class")},
            )
            record, decision = interrupted(unit, error, decision, now)
            encoded = encode(record)
        attempt = attempt_effects(self._keys, record, error, decision.outcome, now)
        all_effects = (*attempt, *effects)
        if decision.outcome == "discarded":
            settlement = Settlement(unit.ticket, "ack", counter="failed", effects=all_effects)
        elif decision.outcome == "retrying":
            settlement = Settlement(
                unit.ticket, "retry", encoded, decision.delay, counter="failed", effects=all_effects
            )
        else:
            settlement = Settlement(
                unit.ticket, "dead", encoded, counter="failed", effects=all_effects
            )
        return settlement, decision, record
