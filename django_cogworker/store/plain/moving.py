"""Moving due jobs without scripts: what is due, and one transaction a job."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import redis

from django_cogworker.store.keys import Keys
from django_cogworker.store.plain.effects import Effects
from django_cogworker.store.plain.places import Places
from django_cogworker.store.scripted import POSTPONE, text
from django_cogworker.store.values import DueJobs, Move


class Mover:
    """Moves jobs out of the scheduled and the retrying set."""

    def __init__(self, client: Any, keys: Keys, places: Places, effects: Effects) -> None:
        self._client = client
        self._keys = keys
        self._places = places
        self._effects = effects

    def due(self, limit: int) -> DueJobs:
        now = time.time()
        batches: list[list[bytes]] = []
        errors = []
        for key in (self._keys.schedule, self._keys.retry):
            try:
                batches.append(self._client.zrangebyscore(key, "-inf", now, 0, limit))
            except redis.ResponseError as error:
                errors.append(f"{key}: {error}")
                batches.append([])
        full = any(len(each) == limit for each in batches)
        return DueJobs(
            batches[0], batches[1], 0 if full else self._places.due_ms(later_than=now), errors
        )

    def graduate(self, source: str, moves: Sequence[Move]) -> list[int | str]:
        verdicts: list[int | str] = []
        for move in moves:
            verdicts.append(self._graduate_one(source, move))
        return verdicts

    def _graduate_one(self, source: str, move: Move) -> int | str:
        """Add and remove in one transaction, which fails where another mover was quicker."""
        names = self._keys.queue(move.queue)
        destination, wanted = self._keys.dead, "zset"
        if move.queue:
            destination, wanted = (
                (names.priority, "zset") if move.priority else (names.jobs, "list")
            )
        while True:
            with self._client.pipeline(transaction=True) as pipe:
                pipe.watch(source)
                if pipe.zscore(source, move.member) is None:
                    return 0
                found = text(pipe.type(destination))
                if found not in ("none", wanted):
                    # A transaction goes on after an error in it, so the type is looked at before.
                    postponed = {move.member: time.time() + POSTPONE}
                    self._client.zadd(source, postponed, xx=True)
                    return f"WRONGTYPE {destination} holds a {found} where a {wanted} belongs"
                pipe.multi()
                if move.queue:
                    pipe.sadd(self._keys.queues, move.queue)
                    self._places.put(pipe, move.queue, move.priority, move.payload, front=False)
                else:
                    self._places.bury(pipe, move.payload, time.time())
                pipe.zrem(source, move.member)
                self._effects.join(pipe, move.effects, move.member)
                try:
                    pipe.execute(raise_on_error=False)
                except redis.WatchError:
                    continue
            self._effects.follow(move.effects)
            if not move.queue:
                self._places.count("failed", 1)
            return 1
