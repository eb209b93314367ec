"""Moving jobs that wait by somebody's wish, without scripts: one transaction a job. A list is gone through for each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import redis

from django_cogworker.store.keys import Keys
from django_cogworker.store.plain.effects import Effects
from django_cogworker.store.plain.places import Places
from django_cogworker.store.plain.transaction import leave_token
from django_cogworker.store.refiling import SOON, Refiling
from django_cogworker.store.scripted import text


class Refiler:
    """Moves them out of any place."""

    def __init__(self, client: Any, keys: Keys, places: Places, effects: Effects) -> None:
        self._client = client
        self._keys = keys
        self._places = places
        self._effects = effects

    def refile(self, source: str, items: Sequence[Refiling]) -> list[int | str]:
        is_list = text(self._client.type(source)) == "list"
        return [self._move(source, each, is_list) for each in items]

    def _move(self, source: str, item: Refiling, is_list: bool) -> int | str:
        """Write and remove in one transaction, which fails where somebody was quicker."""
        while True:
            with self._client.pipeline(transaction=True) as pipe:
                pipe.watch(source)
                try:
                    found = (pipe.lpos if is_list else pipe.zscore)(source, item.member)
                    if found is None:
                        return 0
                    problem = self._problem(pipe, source, item)
                except redis.ResponseError as error:
                    problem = str(error)
                if problem:
                    return problem
                pipe.multi()
                self._write(pipe, item, source, found)
                if is_list:
                    pipe.lrem(source, -1, item.member)
                elif self._key(item) != source or item.payload != item.member:
                    pipe.zrem(source, item.member)
                self._effects.join(pipe, item.effects, item.member)
                try:
                    pipe.execute(raise_on_error=False)
                except redis.WatchError:
                    continue
            self._effects.follow(item.effects)
            return 1

    def _key(self, item: Refiling) -> str:
        """The key that it is written to; empty where it goes nowhere."""
        if item.to == "queue":
            names = self._keys.queue(item.queue)
            return names.priority if item.priority else names.jobs
        sets = {"schedule": self._keys.schedule, "retry": self._keys.retry, "dead": self._keys.dead}
        return sets.get(item.to, "")

    def _problem(self, pipe: Any, source: str, item: Refiling) -> str:
        """A transaction goes on after an error in it, so what would go wrong is looked at before."""
        key, wanted = self._key(item), "zset"
        if not key:
            return ""
        if item.to == "queue":
            names = self._keys.queue(item.queue)
            if source in (names.jobs, names.priority):
                return "it is on that queue"
            wanted = "zset" if item.priority else "list"
        found = text(pipe.type(key))
        if found in ("none", wanted):
            return ""
        return f"WRONGTYPE {key} holds a {found} where a {wanted} belongs"

    def _write(self, pipe: Any, item: Refiling, source: str, score: float) -> None:
        key = self._key(item)
        if item.to == "queue":
            pipe.sadd(self._keys.queues, item.queue)
            self._places.put(pipe, item.queue, item.priority, item.payload, front=False)
        elif item.to == "dead" and key != source:
            self._places.bury(pipe, item.payload, time.time())
        elif item.to != "gone":
            at = score if item.at is None else item.at
            pipe.zadd(key, {item.payload: at})
            if item.to != "dead" and at <= time.time() + SOON:
                leave_token(pipe, self._keys.due_tokens)
