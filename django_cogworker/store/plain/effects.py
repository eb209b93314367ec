"""What features may have done with a move of a job, without scripts: the list of `lib/effects.lua`.

Most effects join the transaction of the move. What depends on a value reads it before that, so two workers
may judge by the same value. `hasten` comes after it, since it asks what the transaction has left; where it
fails, a job is due later than it could be, and nothing else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import redis

from django_cogworker.store import tally
from django_cogworker.store.plain.transaction import leave_token
from django_cogworker.store.values import Effect

logger = logging.getLogger("django_cogworker")


class Effects:
    """Carries them out by single commands."""

    def __init__(self, client: Any) -> None:
        self._client: Any = client

    def join(self, pipe: Any, effects: Sequence[Effect], job: bytes | None = None) -> None:
        """Add them to a transaction. `job`: that of the move, as it is filed now (as it was, where it is
        taken away).
        """
        for each in effects:
            self._join(pipe, each, job)

    def follow(self, effects: Sequence[Effect]) -> None:
        """Carry out those that come after the transaction."""
        for each in effects:
            if each.op != "hasten":
                continue
            try:
                self._hasten(each)
            except (redis.RedisError, OSError) as error:
                logger.warning("A job that waits for %s was not woken: %s.", each.others[0], error)

    def apply(self, effects: Sequence[Effect], job: bytes | None = None) -> None:
        """Carry out effects on their own; one that fails does not stop the others."""
        pipe = self._client.pipeline(transaction=True)
        self.join(pipe, effects, job)
        pipe.execute(raise_on_error=False)
        self.follow(effects)

    def _join(self, pipe: Any, effect: Effect, job: bytes | None) -> None:
        key, args = effect.key, effect.args
        if effect.op == "hincrby":
            for field, by in zip(args[::2], args[1::2], strict=True):
                pipe.hincrby(key, str(field), int(by))
        elif effect.op == "hset":
            pairs = [str(each) for each in args]
            pipe.hset(key, items=pairs)
        elif effect.op == "hdel":
            pipe.hdel(key, *(str(each) for each in args))
        elif effect.op == "advance":
            had = self._client.hget(key, str(args[0])) or b""
            if not had.isdigit() or int(had) <= int(args[1]):
                pairs = [str(each) for each in (*args[:2], *args[3:])]
                pipe.hset(key, items=pairs)
                pipe.expire(key, int(args[2]))
        elif effect.op == "record":
            members = zip((args[1], *args[5::2]), (args[0], *args[4::2]), strict=True)
            pipe.zadd(key, {str(member): float(score) for member, score in members})
            pipe.zremrangebyscore(key, "-inf", f"({args[2]}")
            pipe.zremrangebyrank(key, 0, -int(args[3]) - 1)
        elif effect.op == "append":
            pipe.rpush(key, args[0])
            pipe.ltrim(key, -int(args[1]), -1)
        elif effect.op == "expire":
            pipe.expire(key, int(args[0]))
        elif effect.op == "delete":
            pipe.delete(key)
        elif effect.op == "forget":
            pipe.zrem(key, *(str(each) for each in args))
        elif effect.op == "tally":
            self._tally(pipe, key, args)
        elif effect.op == "hold":
            owner = self._client.get(key)
            if owner is None or owner == str(args[0]).encode():
                pipe.set(key, str(args[0]), ex=int(args[1]))
        elif effect.op in ("enlist", "delist", "hasten"):
            self._line(pipe, effect, job)
        elif self._client.get(key) == str(args[0]).encode():
            if effect.op == "delete_if_owner":
                pipe.delete(key)
            else:
                pipe.expire(key, int(args[1]))

    def _tally(self, pipe: Any, key: str, args: Sequence[str | int]) -> None:
        field, at, most, oldest, words = args
        try:
            had = self._client.hget(key, str(field))
            table = self._client.hgetall(key) if had is None else {}
        except redis.ResponseError as error:
            logger.error("%s cannot be counted in: %s.", key, error)
            return  # what is counted stops no job
        surplus = tally.surplus(table, int(most), float(oldest))
        if surplus:
            pipe.hdel(key, *surplus)
        pipe.hset(key, str(field), tally.counted(had, str(at), str(words)))

    @staticmethod
    def _line(pipe: Any, effect: Effect, job: bytes | None) -> None:
        if job is None or effect.op == "hasten":
            return
        if effect.op == "delist":
            pipe.zrem(effect.key, job)
            return
        rank, most, seconds = effect.args
        pipe.zadd(effect.key, {job: float(rank)})
        pipe.zremrangebyrank(effect.key, int(most), -1)
        pipe.expire(effect.key, int(seconds))

    def _hasten(self, effect: Effect) -> None:
        """Whoever enlists looks here, too, after it has; so one of the two sees the other."""
        waits_for, waiting, tokens = effect.others
        if self._client.exists(waits_for):
            return
        while first := self._client.zrange(effect.key, 0, 0):
            due = self._client.zscore(waiting, first[0])
            if not self._client.zrem(effect.key, first[0]) or due is None:
                continue
            now = time.time()
            if due > now:
                self._client.zadd(waiting, {first[0]: now}, xx=True)
            leave_token(self._client, tokens)
            return
