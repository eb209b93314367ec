"""What the periodic feature takes part in; see `ticker` for the slots.

A job of an entry carries `periodic` (the entry) and `slot`; with `unique_run` also `periodic_lock`. The
lock's life: claimed with the push, for 24 h; held by every step that makes the job wait or brings it
back; extended while it runs; freed in the step that ends it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from django.core import checks

from django_cogworker.client.hooks import PushParts
from django_cogworker.features.base import Feature, Run, Worker
from django_cogworker.features.periodic.checks import check_entries
from django_cogworker.features.periodic.records import LAST_TTL, LOCK_TTL, Records
from django_cogworker.features.periodic.ticker import Ticker, claiming
from django_cogworker.jobs.context import JobContext
from django_cogworker.store.values import Effect, Guard

checks.register(check_entries, "cogworker")

#: Seconds between two extensions of the locks of running jobs.
EXTEND = 600.0

#: jid -> entry, of jobs with a lock that run in this process.
_running: dict[str, str] = {}
_running_lock = threading.Lock()


class Periodic(Feature):
    """Entries become jobs."""

    name = "periodic"
    concerns = frozenset({"periodic"})

    def __init__(self) -> None:
        self._ticker = Ticker()
        self._extended = time.monotonic()

    def attached(self, worker: Worker) -> None:
        self._ticker.start_anew()

    def tick(self) -> None:
        self._ticker.tick()

    def watch(self, context: JobContext) -> Callable[[], None] | None:
        """Notes that this process has a lock to extend."""
        payload = context.payload
        if not _has_lock(payload):
            return None
        with _running_lock:
            _running[context.jid] = payload["periodic"]
        return partial(_ended_here, context.jid)

    def beat(self) -> None:
        if not _running or time.monotonic() - self._extended < EXTEND:
            return
        self._extended = time.monotonic()
        with _running_lock:
            running = dict(_running)
        records = Records()
        records.store.apply(
            [
                Effect("expire_if_owner", records.running(name), (jid, LOCK_TTL))
                for jid, name in running.items()
            ]
        )

    def pushed(self, payload: dict[str, Any]) -> PushParts | None:
        entry = claiming.get()
        if entry is None or payload.get("periodic") != entry.name:
            return None
        records, jid = Records(), payload["jid"]
        guards = [Guard(records.last(entry), str(payload["slot"]), LAST_TTL, "rises")]
        if entry.unique_run:
            guards.append(Guard(records.running(entry.name), jid, LOCK_TTL))
        line = {"slot": payload["slot"], "at": round(payload["created_at"], 3), "jid": jid}
        return PushParts(tuple(guards), records.noted(entry.name, line))

    def graduated(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        return _held(payload)

    def requeued(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        return _held(payload)

    def recovered(self, payload: dict[str, Any], fate: str) -> tuple[Effect, ...]:
        return _ended(payload, "dead") if fate == "dead" else _held(payload)

    def removed(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        return _ended(payload, "removed")

    def settled(self, run: Run) -> tuple[Effect, ...]:
        if not _is_ours(run.payload):
            return ()
        if run.delay or run.outcome in ("retrying", "waiting"):
            return _held(run.payload, run.delay) + _noted(run.payload, run.outcome)
        return _ended(run.payload, run.outcome)


def _ended_here(jid: str) -> None:
    with _running_lock:
        _running.pop(jid, None)


def _is_ours(payload: dict[str, Any]) -> bool:
    return isinstance(payload.get("periodic"), str)


def _has_lock(payload: dict[str, Any]) -> bool:
    return _is_ours(payload) and bool(payload.get("periodic_lock"))


def _held(payload: dict[str, Any], delay: float = 0.0) -> tuple[Effect, ...]:
    if not _has_lock(payload):
        return ()
    key = Records().running(payload["periodic"])
    return (Effect("hold", key, (payload["jid"], int(delay) + 1 + LOCK_TTL)),)


def _noted(payload: dict[str, Any], outcome: str) -> tuple[Effect, ...]:
    slot = payload.get("slot")
    if not isinstance(slot, int):
        return ()
    return Records().ended(payload["periodic"], slot, payload["jid"], outcome)


def _ended(payload: dict[str, Any], outcome: str) -> tuple[Effect, ...]:
    if not _is_ours(payload):
        return ()
    effects = _noted(payload, outcome)
    if _has_lock(payload):
        key = Records().running(payload["periodic"])
        effects += (Effect("delete_if_owner", key, (payload["jid"],)),)
    return effects
