"""Help for the tests of periodic entries without processes."""

from __future__ import annotations

import json
import time
from typing import Any

from django_cogworker.features.periodic.clock import Clock
from django_cogworker.features.periodic.records import Records
from django_cogworker.features.periodic.ticker import Ticker
from django_cogworker.store.store import get_store

SLOT = "tests.project.jobs.Slot"
HOURLY = {"job": SLOT, "cron": "0 * * * *"}
LOCKED = {**HOURLY, "unique_run": True}
#: `COGWORKER_UNIQUE_LOCK_TTL`.
DAY = 86_400


def jobs() -> list[dict[str, Any]]:
    """What waits on the default queue, the oldest first."""
    store = get_store()
    client: Any = store.client
    return [
        json.loads(each)
        for each in reversed(client.lrange(store.keys.queue("default").jobs, 0, -1))
    ]


def slots() -> list[int]:
    return [each["slot"] for each in jobs()]


def newest(entry: Any, count: int = 1) -> list[int]:
    found: list[int] = entry.cron.newest(time.time(), limit=count)
    return found


def missed(entry: Any, count: int = 1) -> list[int]:
    """As if the last slot that became a job lay so many slots back; those since then."""
    found = newest(entry, count + 1)
    client: Any = get_store().client
    client.set(Records().last(entry), found[0], ex=1000)
    return found[1:]


def last(entry: Any) -> int:
    return int(Records().client.get(Records().last(entry)))


def commands_of_a_quiet_time(ticker: Ticker) -> int:
    """How many commands twenty ticks cost now."""
    client: Any = get_store().client
    before = client.info("stats")["total_commands_processed"]
    for _ in range(20):
        ticker.tick()
    found: int = client.info("stats")["total_commands_processed"] - before - 1
    return found


class RedisTime:
    """Redis's clock, as tickers read it, moved by so many seconds."""

    def __init__(self, monkeypatch: Any) -> None:
        self.moved = 0.0
        real = Clock.set

        def shifted(clock: Clock, reply: Any) -> None:
            real(clock, (int(reply[0]) + int(self.moved), reply[1]))

        monkeypatch.setattr(Clock, "set", shifted)

    def now(self) -> float:
        client: Any = get_store().client
        seconds, microseconds = client.time()
        return float(seconds) + float(microseconds) / 1e6 + self.moved

    def move_to(self, moment: float, *tickers: Ticker) -> None:
        """These tickers read it at their next tick."""
        self.moved += int(moment - self.now()) + 1
        for each in tickers:
            each._clock._read_at = float("-inf")
