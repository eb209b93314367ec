"""The jobs that somebody cancelled: a sorted set of jids with the time of the wish.

The newest 10,000 of the last 30 days. A bulletin tells workers to read it, so those who have read it
need ask nothing when a job starts.
"""

from __future__ import annotations

import time

from django_cogworker.payload.failure import clean
from django_cogworker.store.store import get_store
from django_cogworker.store.values import Effect

KEPT = 10_000
TTL = 30 * 86_400


def key() -> str:
    return get_store().keys.of("cancel", "asked")


def ask(jid: str) -> None:
    """Write the wish down, then tell all workers. Raises redis-py's errors."""
    now, store = time.time(), get_store()
    wish = (f"{now:.6f}", clean(jid, 64), f"{now - TTL:.6f}", KEPT)
    store.apply([Effect("record", key(), wish), Effect("expire", key(), (TTL,))])
    store.post_bulletin()


def read() -> frozenset[str]:
    """All of them. Raises redis-py's errors."""
    found = get_store().client.zrange(key(), 0, -1)
    return frozenset(each.decode("utf-8", "replace") for each in found)  # type: ignore[union-attr]
