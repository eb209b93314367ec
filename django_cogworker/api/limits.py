"""Jobs that did not yield to their time-out."""

from __future__ import annotations

from typing import Any

from django_cogworker.features.interrupting.stuck import stuck_key
from django_cogworker.store.foreign import Shape, a_number, a_text, or_none, records
from django_cogworker.store.store import get_store

_SHAPES: dict[str, Shape] = {
    **dict.fromkeys(("jid", "class", "worker", "stack"), a_text),
    **dict.fromkeys(("queue", "reason"), or_none(a_text)),
    "at": a_number,
}


def stuck_jobs(limit: int = 100) -> list[dict[str, Any]]:
    """The last ones, the newest first. Each has `jid`, `class`, `queue`, `worker`, `timeout` (seconds),
    `at` (epoch seconds) and `stack`. O(limit); at most 100 are kept, for 7 days.
    """
    store = get_store()
    found: Any = store.client.zrange(stuck_key(store.keys), 0, max(0, limit - 1), desc=True)
    return records(found, _SHAPES, stuck_key(store.keys))
