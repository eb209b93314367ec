"""The counters and sizes at one moment, in one round trip (and one for the queues)."""

from __future__ import annotations

import dataclasses

from django_cogworker.api.replies import number
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
        *counts, found = pipe.execute(raise_on_error=False)
        processed, failed, scheduled, retrying, dead = map(number, counts)
        if isinstance(found, Exception):
            raise found
        names = sorted(text(each) for each in found)
        pipe = client.pipeline(transaction=False)
        for each in names:
            pipe.llen(keys.queue(each).jobs)
            pipe.zcard(keys.queue(each).priority)
        sizes = list(map(number, pipe.execute(raise_on_error=False)))
        queues = {name: sizes[at * 2] + sizes[at * 2 + 1] for at, name in enumerate(names)}
        return cls(
            processed,
            failed,
            sum(queues.values()),
            scheduled,
            retrying,
            dead,
            queues,
        )
