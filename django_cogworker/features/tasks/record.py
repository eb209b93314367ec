"""What a task adds to the status of its job: one field, with all that a result tells and the status does not.

In test modes, where nothing is in Redis, the failed attempts stand beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django_cogworker.features.status import record as status
from django_cogworker.payload.job import priority_of
from django_cogworker.store.values import Effect

#: The field of the payload: the alias of the backend.
MARK = "task"
#: The field of the status.
FIELD = "task"
#: In test modes: begins the names of the fields of failed attempts.
ATTEMPT = "attempt:"


def is_task(payload: Mapping[str, Any]) -> bool:
    alias = payload.get(MARK)
    return isinstance(alias, str) and bool(alias)


def field_of(payload: Mapping[str, Any]) -> dict[str, str]:
    """The field, from a payload as it is pushed (or later, when it no longer knows its first due time)."""
    told = {
        "class": payload["class"],
        "backend": payload[MARK],
        "queue": str(payload.get("queue", "")),
        "priority": priority_of(payload),
        "args": payload.get("args") or [],
        "kwargs": payload.get("kwargs") or {},
        "enqueued_at": payload.get("created_at"),
        "run_after": payload.get("at"),
    }
    return {FIELD: json.dumps(told, separators=(",", ":"))}


def written(payload: Mapping[str, Any]) -> Effect:
    fields = field_of(payload)
    key = status.key_of(payload["jid"])
    return Effect("hset", key, tuple(text for pair in fields.items() for text in pair))
