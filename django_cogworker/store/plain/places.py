"""Where jobs lie: queues, sets and counters, without scripts."""

from __future__ import annotations

import time
from typing import Any

import redis

from django_cogworker.conf import Config
from django_cogworker.store.keys import Keys
from django_cogworker.store.plain.transaction import leave_token
from django_cogworker.store.scripted import current_hour

# The bands of queue.lua, in Python.
BAND = 2**44
MIDDLE = 2**43


class Places:
    """Writes into a pipe of the caller's where it is given one; else each is a step of its own."""

    def __init__(self, client: Any, keys: Keys, config: Config) -> None:
        self._client = client
        self._keys = keys
        self._dead_max_jobs = config.dead_max_jobs
        self._dead_max_age = config.dead_max_age

    def put(self, pipe: Any, queue: str, priority: int, payload: bytes, *, front: bool) -> None:
        """On its queue, with a token."""
        names = self._keys.queue(queue)
        if priority:
            # Milliseconds keep the order of arrival inside a band well enough without a script.
            offset = MIDDLE + int(time.time() * 1000) * (-1 if front else 1)
            pipe.zadd(names.priority, {payload: (100 - priority) * BAND + offset})
        elif front:
            pipe.rpush(names.jobs, payload)
        else:
            pipe.lpush(names.jobs, payload)
        leave_token(pipe, names.tokens)

    def bury(self, pipe: Any, payload: bytes, now: float) -> None:
        """Into the dead set, which keeps its bounds."""
        pipe.zadd(self._keys.dead, {payload: now})
        pipe.zremrangebyscore(self._keys.dead, "-inf", now - self._dead_max_age)
        pipe.zremrangebyrank(self._keys.dead, 0, -(self._dead_max_jobs + 1))

    def pop(self, queue: str, wanted: int, found: list[bytes]) -> None:
        """Add up to `wanted` jobs of the queue to `found`, one by one, so that an error loses none."""
        names = self._keys.queue(queue)
        zero_band = 100 * BAND
        while len(found) < wanted:
            first = self._client.zrange(names.priority, 0, 0, withscores=True)
            if not first or first[0][1] >= zero_band:
                break
            if self._client.zrem(names.priority, first[0][0]):
                found.append(first[0][0])
        if len(found) < wanted:
            pipe = self._client.pipeline(transaction=True)
            for _ in range(wanted - len(found)):
                pipe.rpop(names.jobs)
            found += [each for each in pipe.execute() if each is not None]
        while len(found) < wanted:
            first = self._client.zrange(names.priority, 0, 0)
            if not first:
                break
            if self._client.zrem(names.priority, first[0]):
                found.append(first[0])
        if wanted <= len(found) and (
            self._client.llen(names.jobs) or self._client.zcard(names.priority)
        ):
            leave_token(self._client, names.tokens)

    def due_ms(self, later_than: float | None = None) -> int:
        """Milliseconds to the next job that is due (-1: none is known)."""
        heads = []
        for key in (self._keys.schedule, self._keys.retry):
            low = "-inf" if later_than is None else f"({later_than}"
            try:
                found = self._client.zrangebyscore(key, low, "+inf", 0, 1, withscores=True)
            except redis.ResponseError:
                continue  # `due` names this key in its errors
            heads += [score for _, score in found]
        return max(0, int((min(heads) - time.time()) * 1000) + 1) if heads else -1

    def count(self, field: str, by: int) -> None:
        """Count jobs that were processed or failed."""
        if not by:
            return
        hour = self._keys.throughput(current_hour())
        pipe = self._client.pipeline(transaction=True)
        pipe.incrby(self._keys.processed if field == "processed" else self._keys.failed, by)
        pipe.hincrby(hour, field, by)
        pipe.expire(hour, 90_000)
        pipe.execute(raise_on_error=False)
