"""When the status of a tracked job is written: at each step of its life.

Its push, its moves and its ends come with effects for the script that does them. Its start and its
reports cost one call each. Where Redis is away then, the job goes on: they are lost, and one line of
the log says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import redis

from django_cogworker import clock
from django_cogworker.client.hooks import PushParts
from django_cogworker.features.base import Feature, Place, Run, Worker
from django_cogworker.features.status import modes, record, results
from django_cogworker.features.status.options import OPTIONS
from django_cogworker.features.status.reading import payload_of, read
from django_cogworker.jobs.context import JobContext, Progress
from django_cogworker.jobs.masking import masked_text
from django_cogworker.payload.failure import clean
from django_cogworker.store.store import get_store
from django_cogworker.store.values import Effect

logger = logging.getLogger("django_cogworker")

_identity: Callable[[], str] = str


def _tell(payload: dict[str, Any], effect: Effect) -> None:
    try:
        get_store().apply([effect])
    except (redis.RedisError, OSError) as error:
        logger.warning(
            "The status of job %s could not be written: %s.",
            payload["jid"],
            error,
            extra={"jid": payload["jid"], "job_class": payload["class"]},
        )


def _push_side(push: Callable[[dict[str, Any]], str | None]) -> Callable[..., str | None]:
    """Client middleware: only a job that is tracked says so."""

    def saying_yes_or_nothing(payload: dict[str, Any]) -> str | None:
        if "track" in payload and not record.is_tracked(payload):
            del payload["track"]
        return push(payload)

    return saying_yes_or_nothing


def _around(perform: Callable[[Any, dict[str, Any]], Any]) -> Callable[[Any, dict[str, Any]], Any]:
    """Server middleware: says that the job works."""

    def tracked(job: Any, payload: dict[str, Any]) -> Any:
        if not record.is_tracked(payload):
            return perform(job, payload)
        board = modes.board()
        if board is not None:
            return board.run(payload, lambda: perform(job, payload))
        _tell(payload, record.begun(payload, _identity()))
        return perform(job, payload)

    return tracked


def _listen(context: JobContext, fields: dict[str, Any]) -> None:
    """Progress and stored fields. Raises `ArgumentError` for what cannot be stored."""
    payload = context.payload
    if not record.is_tracked(payload):
        return
    if isinstance(fields, Progress):
        pairs = {
            "pct": f"{fields['pct']:g}",
            "message": clean(fields["message"], 1000),
        }
    else:
        pairs = results.stored(fields)
    board = modes.board()
    if board is not None:
        board.write(payload, pairs)
    else:
        _tell(payload, record.reported(payload, pairs))


class StatusFeature(Feature):
    """The guest."""

    name = "status"
    options = OPTIONS
    client_middleware = (_push_side,)
    server_middleware = (_around,)
    concerns = frozenset({"track"})
    listeners = (_listen,)

    def pushed(self, payload: dict[str, Any]) -> PushParts | None:
        if not record.is_tracked(payload):
            return None
        due = payload.get("at")
        wait = None if due is None else max(0.0, due - clock.now())
        state = "queued" if wait is None else "scheduled"
        board = modes.board()
        if board is not None:
            board.pushed(payload, state)
            return None
        return PushParts(effects=record.moved(payload, state, wait=wait, afresh=True))

    def graduated(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        return record.moved(payload, "queued") if record.is_tracked(payload) else ()

    def settled(self, run: Run) -> tuple[Effect, ...]:
        payload = run.payload
        if not record.is_tracked(payload):
            return ()
        state = record.state_after(run.outcome, run.delay)
        more: dict[str, str] = {}
        if state == "complete":
            more = {"pct": "100", **results.kept(payload, run.result)}
        board = modes.board()
        if board is not None:
            board.write(payload, {"state": state, **more})
        return record.ended(payload, state, run.delay, run.error, more)

    def requeued(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        return record.stopped(payload) if record.is_tracked(payload) else ()

    def recovered(self, payload: dict[str, Any], fate: str) -> tuple[Effect, ...]:
        if not record.is_tracked(payload):
            return ()
        if fate == "dead":
            error = {
                "error_class": clean(str(payload.get("error_class", "")), 500),
                "error_message": masked_text(clean(str(payload.get("error_message", ""))), payload),
            }
            return record.moved(payload, "dead", ttl=record.end_ttl(payload), more=error)
        return record.moved(payload, "queued" if fate == "front" else "scheduled")

    def refiled(self, payload: dict[str, Any], place: str, wait: float) -> tuple[Effect, ...]:
        if not record.is_tracked(payload):
            return ()
        if place == "dead":
            return record.moved(payload, "dead", ttl=record.end_ttl(payload))
        state = "scheduled" if place == "schedule" else "retrying"
        return record.moved(payload, state, wait=wait)

    def removed(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        if not record.is_tracked(payload):
            return ()
        return (Effect("delete", record.key_of(payload["jid"])),)

    def located(self, jid: str) -> Place | None:
        found = read(jid)
        if found is None:
            return None
        return Place(
            found.state, found.queue, found.due, found.worker, found.updated, payload_of(found)
        )

    def attached(self, worker: Worker) -> None:
        global _identity
        _identity = lambda: worker.identity  # noqa: E731
