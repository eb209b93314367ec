"""The fields of a job: how a payload is built, and how one that somebody else built is checked.

The table of fields stands in `docs/internals/redis.md`. Two ways lead here: `build` from a job
class (its options are checked already) and `normalise` from a dict given to the low-level client
(nothing is).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from django_cogworker import clock
from django_cogworker.conf import Config
from django_cogworker.exceptions import InvalidPayload, PayloadTooLarge
from django_cogworker.parsers import check_queue_name
from django_cogworker.payload.arguments import pack_args, pack_kwargs
from django_cogworker.payload.codec import FORMAT, encode
from django_cogworker.store.values import Outgoing

#: Written by us alone: free data of the app cannot use these names.
OWN_FIELDS = frozenset(
    {
        "class",
        "args",
        "kwargs",
        "queue",
        "jid",
        "retry",
        "created_at",
        "enqueued_at",
        "at",
        "v",
        "tags",
        "priority",
        "unique",
        "unique_key",
        "unique_on",
        "unique_ttl",
        "on_conflict",
        "timeout",
        "expires_at",
        "track",
        "result_ttl",
        "at_most_once",
        "missing_row",
        "context",
        "task",
        "periodic",
        "slot",
        "periodic_lock",
        "error_class",
        "error_message",
        "error_group",
        "error_place",
        "failed_at",
        "retry_count",
        "retried_at",
        "interrupted_count",
        "interruptions",
        "orphanings",
        "host_restarts",
        "cancelled",
        "unknown_since",
        "raw_payload",
    }
)

MAX_JID = 63
PRIORITIES = range(-100, 101)
#: Due times lie before the end of the year 9999, as with `datetime`.
LAST_MOMENT = 253_402_300_800


def priority_of(payload: Mapping[str, Any]) -> int:
    """The priority of a job that was read from Redis; junk counts as none."""
    priority = payload.get("priority", 0)
    return priority if type(priority) is int and priority in PRIORITIES else 0


def new_jid() -> str:
    """24 hex characters."""
    return os.urandom(12).hex()


def build(
    class_name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    fields: Mapping[str, Any],
    at: float | None = None,
) -> dict[str, Any]:
    """A payload for a call of a job class. `fields` are the class's options in wire form."""
    payload: dict[str, Any] = {"class": class_name, "args": pack_args(args)}
    if kwargs:
        payload["kwargs"] = pack_kwargs(kwargs)
    payload.update(fields)
    payload["v"] = FORMAT
    payload["jid"] = new_jid()
    payload["created_at"] = round(clock.now(), 6)
    if at is not None:
        payload["at"] = at
    return payload


def normalise(given: Mapping[str, Any]) -> dict[str, Any]:
    """A complete payload from a hand-made one. Raises `InvalidPayload` or `ArgumentError`.

    `class` is a text or a job class. Absent fields get their defaults: `args` [], `queue`
    "default", `retry` True, a new `jid`, `created_at` now. `at` (epoch seconds) makes it a
    scheduled job. Fields that we do not know are kept.
    """
    if not isinstance(given, Mapping):
        raise InvalidPayload(f"A payload is a mapping, not a {type(given).__name__}.")
    payload = dict(given)
    for key in payload:
        if not isinstance(key, str):
            raise InvalidPayload(f"The payload has the key {key!r}; its keys are texts.")
    payload["class"] = _class_name(payload.get("class"))
    args, kwargs = payload.get("args", ()), payload.get("kwargs", {})
    if not isinstance(args, (list, tuple)):
        raise InvalidPayload(f"'args' is a list, not a {type(args).__name__}.")
    if not isinstance(kwargs, dict) or not all(isinstance(each, str) for each in kwargs):
        raise InvalidPayload("'kwargs' is a dict with texts as keys.")
    payload["args"] = pack_args(args)
    payload.pop("kwargs", None)
    if kwargs:
        payload["kwargs"] = pack_kwargs(kwargs)
    payload.pop("enqueued_at", None)
    if payload.get("at") is None:
        payload.pop("at", None)
    payload.setdefault("queue", "default")
    payload.setdefault("retry", True)
    if payload.get("jid") is None:
        payload["jid"] = new_jid()
    payload["v"] = FORMAT
    payload.setdefault("created_at", round(clock.now(), 6))
    _check_fields(payload)
    return payload


def _class_name(given: Any) -> str:
    name = getattr(given, "job_name", given)
    if not isinstance(name, str) or not name:
        raise InvalidPayload(f"'class' is the name of a job class or the class, not {given!r}.")
    return name


def _check_fields(payload: dict[str, Any]) -> None:
    try:
        check_queue_name(payload["queue"])
    except ValueError as error:
        raise InvalidPayload(f"'queue' is {payload['queue']!r}: {error}.") from None
    jid = payload["jid"]
    if not isinstance(jid, str) or not 0 < len(jid) <= MAX_JID or not jid.isprintable():
        raise InvalidPayload(f"'jid' is a text of 1 to {MAX_JID} characters, not {jid!r}.")
    retry = payload["retry"]
    if not isinstance(retry, int) or retry < 0:
        raise InvalidPayload(f"'retry' is True, False or a number of retries, not {retry!r}.")
    priority = payload.get("priority", 0)
    if isinstance(priority, bool) or not isinstance(priority, int) or priority not in PRIORITIES:
        raise InvalidPayload(f"'priority' is a whole number from -100 to 100, not {priority!r}.")
    for name in ("at", "created_at", "expires_at"):
        value = payload.get(name)
        if value is not None and (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not abs(value) < LAST_MOMENT
        ):
            raise InvalidPayload(f"{name!r} is a time in epoch seconds, not {value!r}.")
    limit = payload.get("timeout")
    if limit is not None and (
        isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 < limit < math.inf
    ):
        raise InvalidPayload(f"'timeout' is a number of seconds above 0, not {limit!r}.")
    tags = payload.get("tags", [])
    if not isinstance(tags, (list, tuple)) or not all(isinstance(each, str) for each in tags):
        raise InvalidPayload(f"'tags' is a list of texts, not {tags!r}.")


def outgoing(payload: dict[str, Any], config: Config) -> Outgoing:
    """The payload encoded, ready to be pushed; too large ones are refused.

    Not stamped with `enqueued_at` yet. Raises `InvalidPayload` (a middleware put something in that
    JSON cannot hold) or `PayloadTooLarge`.
    """
    encoded = encode(payload)
    if len(encoded) > config.payload_max:
        raise PayloadTooLarge(
            f"{payload['class']} has a payload of {len(encoded)} bytes; COGWORKER_PAYLOAD_MAX allows "
            f"{config.payload_max}. Store the data elsewhere and pass a reference to it."
        )
    return Outgoing(
        payload["jid"], payload["queue"], encoded, payload.get("priority", 0), payload.get("at")
    )
