"""The option `expires_in`: a job that would start too late is dropped, counted and shown.

The call writes the moment into the payload (`expires_at`); it counts from the call, or from the due
time of a scheduled job. The processor asks before each start, retries included; a job that runs is
left alone. No Redis call is made for any of it: the count travels with the settlement.
"""

from __future__ import annotations

import time
from typing import Any

import redis
from django.utils.translation import gettext as _

from django_cogworker import clock
from django_cogworker.features.base import Feature, Reason, Refused, Run
from django_cogworker.features.durations import seconds_or_none
from django_cogworker.features.moments import moment
from django_cogworker.jobs.options import Option
from django_cogworker.store.keys import Keys
from django_cogworker.store.store import get_store
from django_cogworker.store.values import Effect

OUTCOME = "expired"


def count_key(keys: Keys) -> str:
    """hash: `total`, how many jobs expired; `last_at`, `last_class`, `last_jid`."""
    return keys.of("expiry", "count")


def _stamp(value: Any, payload: dict[str, Any]) -> None:
    if value is not None:
        payload["expires_at"] = round(payload.get("at", payload["created_at"]) + value, 6)


def _lateness(payload: dict[str, Any]) -> float:
    """Seconds since it expired; below 0 before that, or where it never does."""
    expires_at = payload.get("expires_at")
    if isinstance(expires_at, bool) or not isinstance(expires_at, (int, float)):
        return -1.0
    return clock.now() - float(expires_at)


class Expiry(Feature):
    name = "expiry"
    options = (Option("expires_in", None, seconds_or_none, stamp=_stamp),)
    concerns = frozenset({"expires_at"})
    admits_alone = True

    def admit(self, payload: dict[str, Any]) -> Refused | None:
        late = _lateness(payload)
        if late <= 0:
            return None
        return Refused(OUTCOME, f"it expired {late:.1f} s before it could start")

    def holding_up(self, payload: dict[str, Any], state: str) -> tuple[Reason, ...]:
        late = _lateness(payload)
        if late <= 0 or state == "working":
            return ()
        expired_at = float(payload["expires_at"])
        said = {"when": moment(expired_at)}
        text = _("It expired at %(when)s: the worker that comes to it drops it.") % said
        return (Reason("expired", text, {"expired_at": expired_at}),)

    def settled(self, run: Run) -> tuple[Effect, ...]:
        if run.outcome != OUTCOME:
            return ()
        key = count_key(get_store().keys)
        last = ("last_at", round(time.time()), "last_class", run.payload["class"])
        return (
            Effect("hincrby", key, ("total", 1)),
            Effect("hset", key, (*last, "last_jid", run.payload["jid"])),
        )

    def counters(self) -> dict[str, int]:
        store = get_store()
        try:
            found: Any = store.client.hget(count_key(store.keys), "total")
            return {OUTCOME: int(found or 0)}
        except (redis.ResponseError, ValueError):  # a key of the wrong type
            return {OUTCOME: 0}
