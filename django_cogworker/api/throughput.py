"""Throughput: what ended in each of the last 24 hours."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from django_cogworker.api.replies import number
from django_cogworker.store.store import get_store

HOURS = 24


@dataclasses.dataclass(frozen=True, slots=True)
class HourCount:
    """`at` is when the hour began (epoch seconds); `processed` counts successful runs, `failed` failed attempts."""

    at: int
    processed: int
    failed: int


def throughput() -> list[HourCount]:
    """24 hours, the oldest first, ending with the one that has begun; zeros where nothing ended. One round trip."""
    store = get_store()
    now = int(time.time() // 3600)
    hours = range(now - HOURS + 1, now + 1)
    pipe: Any = store.client.pipeline(transaction=False)
    for each in hours:
        key = store.keys.throughput(each)
        pipe.hget(key, "processed")
        pipe.hget(key, "failed")
    found = list(map(number, pipe.execute(raise_on_error=False)))
    return [
        HourCount(hour * 3600, found[at * 2], found[at * 2 + 1]) for at, hour in enumerate(hours)
    ]
