"""Write the life of each job into `JobRun`.

The enqueueing process and the workers write independently of each other, so a job may start before
its row from `job_enqueued` is there: every receiver makes the row if need be, and changes it with
one UPDATE that counts in the database.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Case, F, Value, When

from django_cogworker import signals
from runs.models import JobRun

State = JobRun.State

OUTCOMES = {
    "retrying": State.RETRYING,
    "dead": State.DEAD,
    "killed": State.DEAD,
    "discarded": State.DISCARDED,
}


def connect() -> None:
    """Listen to the signals; called once, when the apps are ready."""
    signals.job_enqueued.connect(on_enqueued)
    signals.job_started.connect(on_started)
    signals.job_finished.connect(on_finished)
    signals.job_failed.connect(on_failed)


def on_enqueued(sender: Any, jid: str, payload: dict[str, Any], **kwargs: Any) -> None:
    _ensure(jid, payload)


def on_started(sender: Any, jid: str, payload: dict[str, Any], **kwargs: Any) -> None:
    _ensure(jid, payload)
    _update(jid, state=State.RUNNING, runs=F("runs") + 1)


def on_finished(
    sender: Any, jid: str, payload: dict[str, Any], duration: float, **kwargs: Any
) -> None:
    _update(jid, state=State.FINISHED, seconds=duration)


def on_failed(
    sender: Any,
    jid: str,
    payload: dict[str, Any],
    error: BaseException,
    outcome: str,
    **kwargs: Any,
) -> None:
    _ensure(jid, payload)  # a job of an unknown class fails without having started
    state: Any = Value(OUTCOMES[outcome])
    if outcome == "retrying":
        # Where the database is busy, the next run may have begun, or even ended, before this is
        # written.
        superseded = When(runs__gt=F("failures") + 1, then=F("state"))
        state = Case(superseded, default=state)
    _update(
        jid,
        state=state,
        failures=F("failures") + 1,
        retries=F("retries") + (1 if outcome == "retrying" else 0),
        error=f"{type(error).__name__}: {error}"[:300],
    )


def _ensure(jid: str, payload: dict[str, Any]) -> None:
    row = JobRun(jid=jid, job_class=payload["class"], queue=payload.get("queue") or "")
    JobRun.objects.bulk_create([row], ignore_conflicts=True)


def _update(jid: str, **values: Any) -> None:
    JobRun.objects.filter(jid=jid).update(**values)
