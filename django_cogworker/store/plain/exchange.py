"""Settling and fetching without scripts.

Nothing is kept of what was fetched: from the moment it is popped a job is in this process's memory alone.
So an error on the way is part of the reply, which has what came before it.
"""

from __future__ import annotations

import time
from typing import Any

import redis

from django_cogworker.store.keys import Keys
from django_cogworker.store.plain.effects import Effects
from django_cogworker.store.plain.places import Places
from django_cogworker.store.plain.transaction import first_error
from django_cogworker.store.scripted import text
from django_cogworker.store.values import ExchangeReply, ExchangeRequest, Settlement, Taken


class Exchanger:
    """Carries out exchanges."""

    def __init__(self, client: Any, keys: Keys, places: Places, effects: Effects) -> None:
        self._client = client
        self._keys = keys
        self._places = places
        self._effects = effects

    def exchange(self, request: ExchangeRequest) -> ExchangeReply:
        verdicts: list[int | str] = []
        jobs: list[Taken] = []
        errors: list[str] = []
        due_ms, counted = -1, False
        try:
            for each in request.settlements:
                verdicts.append(self._settle(each))
            self._places.count("processed", len(request.acknowledged))
            counted = bool(request.acknowledged)
            if counted and request.notes:
                self._effects.apply(request.notes)
            self._fetch(request, jobs, errors)
            due_ms = self._places.due_ms()
        except (redis.RedisError, OSError) as error:
            # The call can only be repeated while it has done nothing: what was popped is in memory alone.
            if not (verdicts or jobs or counted):
                raise
            errors.append(f"basic mode: {error}")
            missing = len(request.settlements) - len(verdicts)
            verdicts += [f"not reached: {error}"] * missing
        ticket = request.first_ticket + len(jobs)
        return ExchangeReply(False, ticket, due_ms, verdicts, jobs, errors, self._bulletin())

    def _bulletin(self) -> int:
        try:
            return int(self._client.get(self._keys.bulletin) or 0)
        except (redis.RedisError, OSError, ValueError):
            return 0

    def _fetch(self, request: ExchangeRequest, jobs: list[Taken], errors: list[str]) -> None:
        """Add what can be taken to `jobs`, job by job, so that an error loses none."""
        paused: set[str] = set()
        try:
            paused = {text(each) for each in self._client.smembers(self._keys.paused)}
        except redis.ResponseError as error:
            errors.append(f"{self._keys.paused}: {error}")
        for name in request.queues:
            if name in paused:
                continue
            found: list[bytes] = []
            try:
                self._places.pop(name, request.wanted - len(jobs), found)
            except redis.ResponseError as error:
                errors.append(f"{name}: {error}")
            finally:
                stamp, ticket = int(time.time() * 1000), request.first_ticket + len(jobs)
                jobs += [Taken(ticket + at, name, stamp, each) for at, each in enumerate(found)]

    def _settle(self, settlement: Settlement) -> int | str:
        pipe = self._client.pipeline(transaction=True)
        payload, now = settlement.payload, time.time()
        if payload is not None and settlement.disposition in ("schedule", "retry"):
            retry = settlement.disposition == "retry"
            key = self._keys.retry if retry else self._keys.schedule
            pipe.zadd(key, {payload: now + settlement.delay})
        elif payload is not None and settlement.disposition == "dead":
            self._places.bury(pipe, payload, now)
        elif payload is not None and settlement.disposition == "front":
            self._places.put(pipe, settlement.queue, settlement.priority, payload, front=True)
        self._effects.join(pipe, settlement.effects, payload)
        problem = first_error(pipe)
        if problem is not None:
            return problem
        self._effects.follow(settlement.effects)
        if settlement.counter:
            self._places.count(settlement.counter, 1)
        return 1
