"""The counters and sizes at one moment, in one round trip (and one for the queues)."""

from __future__ import annotations

import dataclasses
from typing import Any

from django_cogworker.store.scripted import text
from django_cogworker.store.store import get_store


@dataclasses.dataclass(frozen=True, slots=True)
class Stats:
    """`processed` counts successful runs, `failed` failed attempts; the rest are sizes now."""

    processed: int
    failed: int
    enqueued: int
    scheduled: int
    retrying: int
    dead: int
    queues: dict[str, int]

    @classmethod
    def now(cls) -> Stats:
        """Read them. O(number of queues)."""
        store = get_store()
        keys, client = store.keys, store.client
        pipe = client.pipeline(transaction=False)
        pipe.get(keys.processed)
        pipe.get(keys.failed)
        pipe.zcard(keys.schedule)
        pipe.zcard(keys.retry)
        pipe.zcard(keys.dead)
        pipe.smembers(keys.queues)
        processed, failed, scheduled, retrying, dead, found = pipe.execute()
        names = sorted(text(each) for each in found)
        pipe = client.pipeline(transaction=False)
        for each in names:
            pipe.llen(keys.queue(each).jobs)
            pipe.zcard(keys.queue(each).priority)
        sizes: list[Any] = pipe.execute()
        queues = {name: sizes[at * 2] + sizes[at * 2 + 1] for at, name in enumerate(names)}
        return cls(
            int(processed or 0),
            int(failed or 0),
            sum(queues.values()),
            scheduled,
            retrying,
            dead,
            queues,
        )
