"""The jobs that somebody cancelled: a sorted set of jids with the time of the wish, and another one of those that
are to be interrupted where they run.

Of each the newest 10,000 of the last 30 days. A bulletin tells workers to read it, so those who have read it
need ask nothing when a job starts.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from django_cogworker.payload.failure import clean
from django_cogworker.store.store import get_store
from django_cogworker.store.values import Effect

KEPT = 10_000
TTL = 30 * 86_400


@dataclasses.dataclass(frozen=True, slots=True)
class Wishes:
    """The jids that are to end, and those of them that are to be interrupted."""

    all: frozenset[str] = frozenset()
    forced: frozenset[str] = frozenset()


def key() -> str:
    return get_store().keys.of("cancel", "asked")


def forced_key() -> str:
    return get_store().keys.of("cancel", "forced")


def ask(jid: str, *, force: bool = False) -> None:
    """Write the wish down, then tell all workers. Raises redis-py's errors."""
    now, store = time.time(), get_store()
    wish = (f"{now:.6f}", clean(jid, 64), f"{now - TTL:.6f}", KEPT)
    effects = []
    for each in (key(), forced_key()) if force else (key(),):
        effects += [Effect("record", each, wish), Effect("expire", each, (TTL,))]
    store.apply(effects)
    store.post_bulletin()


def since(jid: str) -> float | None:
    """When somebody last cancelled that job, where that is known. Raises redis-py's errors."""
    found: Any = get_store().client.zscore(key(), clean(jid, 64))
    return None if found is None else float(found)


def read() -> Wishes:
    """All of them. Raises redis-py's errors."""
    pipe = get_store().client.pipeline(transaction=False)
    pipe.zrange(key(), 0, -1)
    pipe.zrange(forced_key(), 0, -1)
    asked, forced = (
        {each.decode("utf-8", "replace") for each in found} for found in pipe.execute()
    )
    return Wishes(frozenset(asked), frozenset(forced))
