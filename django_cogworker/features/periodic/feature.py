"""What the periodic feature takes part in; see `ticker` for the slots.

A job of an entry carries `periodic` (the entry) and `slot`; with `unique_run` also `periodic_lock`. The
lock's life: claimed with the push, for a day (`COGWORKER_UNIQUE_LOCK_TTL`); shortened when the run
starts, to what recovery needs and 120 s more, and extended by each beat while it runs, so a run that is
lost with its worker and cannot be recovered blocks no slot for long; for a day again by every step that
makes the job wait or brings it back, also where the lock had ended meanwhile; freed in the step that
ends the job. Each step touches only the lock of its own job.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import redis
from django.core import checks

from django_cogworker.client.hooks import PushParts
from django_cogworker.features.base import Clockwork, Feature, Refused, Run, Worker
from django_cogworker.features.periodic import entries
from django_cogworker.features.periodic.checks import check_entries
from django_cogworker.features.periodic.records import LAST_TTL, Records, running_ttl, waiting_ttl
from django_cogworker.features.periodic.slots import Slots
from django_cogworker.features.periodic.state import claiming
from django_cogworker.features.periodic.ticker import Ticker
from django_cogworker.jobs.context import JobContext
from django_cogworker.store.values import Effect, Guard

checks.register(check_entries, "cogworker")

logger = logging.getLogger("django_cogworker")

#: After a pause of so many seconds between two good beats, locks of running jobs that are gone are taken anew.
PAUSE = 15.0

#: jid -> entry, of jobs with a lock that run in this process.
_running: dict[str, str] = {}
_running_lock = threading.Lock()


class Periodic(Feature):
    """Entries become jobs."""

    name = "periodic"
    concerns = frozenset({"periodic"})

    def __init__(self) -> None:
        self._ticker = Ticker()
        self._beaten = time.monotonic()

    def attached(self, worker: Worker) -> None:
        self._ticker.start_anew(lambda: worker.fates_known)

    def known_keys(self) -> dict[str, str]:
        return Records().types([each.name for each in entries.all_entries()])

    def tick(self) -> None:
        self._ticker.tick()

    def clockwork(self, now: float, names: Sequence[str] | None) -> Clockwork:
        wanted = entries.all_or_error() if names is None else map(entries.find, names)
        return Slots(tuple(wanted), now)

    def watch(self, context: JobContext) -> Callable[[], None] | None:
        """Notes that this process has a lock to extend."""
        payload = context.payload
        if not _has_lock(payload):
            return None
        with _running_lock:
            _running[context.jid] = payload["periodic"]
        return partial(_ended_here, context.jid)

    def admit(self, payload: dict[str, Any]) -> Refused | None:
        if not _has_lock(payload):
            return None
        try:
            _extend({payload["jid"]: payload["periodic"]}, running_ttl())
        except (redis.RedisError, OSError) as error:  # the next beat does it
            logger.warning("The lock of job %s cannot be shortened now: %s", payload["jid"], error)
        return None

    def beat(self) -> None:
        pause, self._beaten = time.monotonic() - self._beaten, time.monotonic()
        running = _now_running()
        if not running:
            return
        if pause > PAUSE:
            # An outage: it may have ended for want of beats.
            _extend(running, running_ttl(), "hold")
            return
        # Never taken anew: a lock that is gone was freed.
        _extend(running, running_ttl())
        still = _now_running()
        ended = {jid: name for jid, name in running.items() if jid not in still}
        if ended:  # in this very moment; one that waits for its retry is not to be left with the short time
            _extend(ended, waiting_ttl())

    def pushed(self, payload: dict[str, Any]) -> PushParts | None:
        claim = claiming.get()
        if claim is None or payload.get("periodic") != claim.entry.name:
            return None
        entry = claim.entry
        records, jid = Records(), payload["jid"]
        guards = [Guard(records.last(entry), str(payload["slot"]), LAST_TTL, "rises")]
        if entry.unique_run:
            guards.append(Guard(records.running(entry.name), jid, waiting_ttl()))
        line = {"slot": payload["slot"], "at": round(payload["created_at"], 3), "jid": jid}
        return PushParts(tuple(guards), records.noted(entry.name, (*claim.left_out, line)))

    def graduated(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        return _held(payload)

    def requeued(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        return _held(payload)

    def recovered(self, payload: dict[str, Any], fate: str) -> tuple[Effect, ...]:
        return _ended(payload, "dead") if fate == "dead" else _held(payload)

    def refiled(self, payload: dict[str, Any], place: str, wait: float) -> tuple[Effect, ...]:
        if place == "dead":
            return _ended(payload, "dead")
        return _held(payload, wait)

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


def _now_running() -> dict[str, str]:
    with _running_lock:
        return dict(_running)


def _extend(
    jobs: dict[str, str], ttl: int, op: Literal["expire_if_owner", "hold"] = "expire_if_owner"
) -> None:
    """Let the locks of these jobs (jid -> entry) live for so many seconds from now."""
    records = Records()
    records.store.apply(
        [Effect(op, records.running(name), (jid, ttl)) for jid, name in jobs.items()]
    )


def _is_ours(payload: dict[str, Any]) -> bool:
    return isinstance(payload.get("periodic"), str)


def _has_lock(payload: dict[str, Any]) -> bool:
    return _is_ours(payload) and bool(payload.get("periodic_lock"))


def _held(payload: dict[str, Any], delay: float = 0.0) -> tuple[Effect, ...]:
    if not _has_lock(payload):
        return ()
    key = Records().running(payload["periodic"])
    return (Effect("hold", key, (payload["jid"], waiting_ttl(delay))),)


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
