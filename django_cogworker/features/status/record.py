"""The hash of a tracked job, `status:<jid>`: its fields, and the effects that write it.

Moves of the job write it in the same script. The start and what a job reports of itself are written
by the worker's own calls, which may come late: they carry a number that grows with the job's life
(field `order`), and are refused where a higher one is there. So a slow worker never writes over the
end that its job found elsewhere.

A hash lives for `COGWORKER_STATUS_EXPIRATION` after the end (for `result_ttl` where the job has one), and
before that for a day longer than the job is to wait.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from typing import Any

from django_cogworker.conf import get_config
from django_cogworker.jobs.masking import masked_text
from django_cogworker.payload.failure import clean, error_name, error_text, failures
from django_cogworker.store.keys import Keys
from django_cogworker.store.values import Effect

#: Before its end a job is remembered for so long after its last change, and besides for its wait (seconds).
PATIENCE = 86_400
#: Begins the names of the fields that the job itself stores.
OWN = "own:"

#: Begins the names of the fields that tell of each start; the order of the run follows.
START = "run:"

#: States of a job that has not ended; all others are ends, whatever a feature refused the job with.
ALIVE = frozenset({"queued", "scheduled", "working", "retrying"})

#: How a run ended, and the job's state after that. Others are states of their own.
_STATES = {
    "finished": "complete",
    "retrying": "retrying",
    "dead": "dead",
    "killed": "dead",
    "discarded": "failed",
    "waiting": "scheduled",
}

#: Fields of the payload that are kept for those who ask what holds the job up.
_KEPT = frozenset({"unique", "unique_key", "expires_at", "orphanings", "host_restarts"})
#: What a run that came to an end of its own drops from the payload.
_OF_ONE_RUN = ("orphanings", "host_restarts")

#: Places within one attempt.
_WAITS, _WORKS, _ENDED, _STOPPED = range(4)


def is_tracked(payload: Mapping[str, Any]) -> bool:
    return bool(payload.get("track"))


def key_of(jid: str) -> str:
    return Keys(get_config().key_prefix).of("status", clean(jid, 64))


def state_after(outcome: str, delay: float) -> str:
    return _STATES.get(outcome, "scheduled" if delay else outcome)


def _whole(value: Any) -> int:
    return value if type(value) is int and 0 < value < 1000 else 0


def order_of(payload: Mapping[str, Any], place: int) -> int:
    """A number that grows with the life of a job: by its failures, then by what broke its runs off."""
    breaks = sum(
        _whole(payload.get(each)) for each in ("orphanings", "host_restarts", "interruptions")
    )
    return (min(failures(dict(payload)), 10**6) * 10_000 + breaks) * 4 + place


def start_of(payload: Mapping[str, Any], worker: str, now: float) -> dict[str, str]:
    """The field that tells of this start: when, and in which worker. Written twice it is there once."""
    return {f"{START}{order_of(payload, _WORKS)}": f"{now:.6f} {worker}"}


def is_first_run(payload: Mapping[str, Any]) -> bool:
    """Whether this job, which starts now, has never started before."""
    return order_of(payload, _WAITS) == _WAITS


def _known(payload: Mapping[str, Any]) -> dict[str, str]:
    return {
        "class": clean(str(payload.get("class", "")), 500),
        "queue": clean(str(payload.get("queue", "")), 500),
        "attempt": str(failures(dict(payload)) + 1),
    }


def facts_of(payload: Mapping[str, Any]) -> str:
    """What of the payload may hold the job up, as JSON; empty where there is nothing, as mostly."""
    facts = {name: payload[name] for name in payload.keys() & _KEPT}
    try:
        return json.dumps(facts, separators=(",", ":")) if facts else ""
    except (TypeError, ValueError):  # a middleware's doing
        return ""


def _pairs(fields: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(text for pair in fields.items() for text in pair)


def _seconds(ttl: float) -> int:
    return max(1, math.ceil(min(ttl, 10**9)))


def waiting_ttl(wait: float = 0.0) -> float:
    return get_config().status_expiration + PATIENCE + max(0.0, wait)


def end_ttl(payload: Mapping[str, Any]) -> float:
    kept = payload.get("result_ttl")
    if isinstance(kept, (int, float)) and not isinstance(kept, bool) and kept > 0:
        return float(kept)
    return get_config().status_expiration


def moved(
    payload: Mapping[str, Any],
    state: str,
    *,
    place: int = _WAITS,
    wait: float | None = None,
    ttl: float | None = None,
    afresh: bool = False,
    more: Mapping[str, str] | None = None,
) -> tuple[Effect, ...]:
    """Effects for a move: it is carried out where the job is held, so it is always the newest word."""
    key, now = key_of(payload["jid"]), time.time()
    fields = {
        "order": str(order_of(payload, place)),
        "state": clean(state, 100),
        "updated": f"{now:.6f}",
        "due": "" if wait is None else f"{now + wait:.6f}",
        "worker": "",
        "facts": facts_of(payload),
        **_known(payload),
        **(more or {}),
    }
    if "result_ttl" in payload:
        fields["keeps"] = "1"
    if ttl is None:
        ttl = waiting_ttl(wait or 0.0)
    effects = (
        Effect("hset", key, _pairs(fields)),
        Effect("expire", key, (_seconds(ttl),)),
    )
    return (Effect("delete", key), *effects) if afresh else effects


def stopped(payload: Mapping[str, Any]) -> tuple[Effect, ...]:
    """Effects for a job that a stop put back: what its processor still reports comes too late."""
    return moved(payload, "queued", place=_STOPPED)


def ended(
    payload: Mapping[str, Any],
    state: str,
    delay: float,
    error: BaseException | None,
    more: Mapping[str, str] | None = None,
) -> tuple[Effect, ...]:
    """Effects for a job that came to the end of a run, or to its end."""
    fields = {"error_class": "", "error_message": ""}
    if error is not None:
        fields = {
            "error_class": clean(error_name(error), 500),
            # The status outlives the job, and with it the arguments by which a text is known as hidden.
            "error_message": masked_text(clean(error_text(error)), payload),
        }
    wait = delay if state in ALIVE else None
    ttl = end_ttl(payload) if wait is None else None
    if state == "retrying":
        fields["facts"] = facts_of({k: v for k, v in payload.items() if k not in _OF_ONE_RUN})
    return moved(payload, state, place=_ENDED, wait=wait, ttl=ttl, more={**fields, **(more or {})})


def begun(payload: Mapping[str, Any], worker: str) -> Effect:
    """The effect for a start: refused where a newer word is there."""
    now = time.time()
    fields = {
        "state": "working",
        "updated": f"{now:.6f}",
        **start_of(payload, worker, now),
        "due": "",
        "worker": worker,
        "pct": "",
        "message": "",
        **_known(payload),
    }
    if "result_ttl" in payload:
        fields["keeps"] = "1"
    return _advance(payload, fields)


def reported(payload: Mapping[str, Any], fields: Mapping[str, str]) -> Effect:
    """The effect for what a running job says of itself."""
    return _advance(payload, {"updated": f"{time.time():.6f}", **fields})


def _advance(payload: Mapping[str, Any], fields: Mapping[str, str]) -> Effect:
    order = str(order_of(payload, _WORKS))
    ttl = _seconds(waiting_ttl())
    return Effect("advance", key_of(payload["jid"]), ("order", order, ttl, *_pairs(fields)))


def in_wire_form(value: Any) -> str:
    """JSON in ASCII of what `payload.arguments` has packed."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
