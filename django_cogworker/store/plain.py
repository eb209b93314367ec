"""The verbs without scripts, for servers that forbid them (and for those too old for ours).

A job that runs is known to its worker's memory alone, so a killed worker loses what it had fetched;
a push repeated after a lost reply may be there twice. Everything else holds: retries, the dead set,
scheduled jobs, pausing, stopping. Tokens work as with scripts, so the fetcher above is the same.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from typing import Any

import redis

from django_cogworker.conf import Config
from django_cogworker.store.keys import Keys
from django_cogworker.store.plain_effects import PlainEffects, leave_token
from django_cogworker.store.scripted import (
    HOST_TTL,
    POSTPONE,
    PRESENCE_TTL,
    SIGNAL_TTL,
    current_hour,
    read_command,
    text,
)
from django_cogworker.store.values import (
    Beat,
    BeatReply,
    DueJobs,
    Effect,
    ExchangeReply,
    ExchangeRequest,
    Guard,
    Move,
    Outgoing,
    Refusal,
    Settlement,
    Taken,
)

# The bands of queue.lua, in Python.
BAND = 2**44
MIDDLE = 2**43


class PlainVerbs:
    """`Verbs` by single commands and MULTI."""

    reliable = False

    def __init__(self, client: redis.Redis, keys: Keys, config: Config) -> None:
        # redis-py types replies as the union of all that any option may give.
        self._client: Any = client
        self._effects = PlainEffects(client)
        self._keys = keys
        self._dead_max_jobs = config.dead_max_jobs
        self._dead_max_age = config.dead_max_age

    # Clients.

    def push(self, lane: str, number: int, jobs: Sequence[Outgoing]) -> list[Refusal | None]:
        verdicts: list[Refusal | None] = []
        for job in jobs:
            reason = self._claim(job.guards)
            if reason is None:
                reason = self._push_one(job)
                if reason is not None:
                    self._unclaim(job.guards)
            verdicts.append(None if reason is None else Refusal(reason))
        return verdicts

    def claim(self, guard: Guard) -> Refusal | None:
        """Claim a guard on its own."""
        reason = self._claim((guard,))
        return None if reason is None else Refusal(reason)

    def _unclaim(self, guards: Sequence[Guard]) -> None:
        """The job could not be written. What was taken from others or has risen stays as it is."""
        self.apply(
            [
                Effect("delete_if_owner", each.key, (each.owner,))
                for each in guards
                if each.kind == "claim"
            ]
        )

    def _claim(self, guards: Sequence[Guard]) -> str | None:
        for guard in guards:
            if guard.kind == "claim" and self._client.set(
                guard.key, guard.owner, nx=True, ex=guard.ttl
            ):
                continue
            had = text(self._client.get(guard.key) or b"")
            if guard.kind == "claim" and had != guard.owner:
                return f"duplicate {had}"
            if guard.kind == "rises" and had.isdigit() and int(had) >= int(guard.owner):
                return f"duplicate {had}"
            if guard.kind == "take" and guard.ousted and had not in ("", guard.owner):
                lives = (self._client.ttl(guard.key), self._client.ttl(guard.ousted))
                self._client.hset(guard.ousted, had, 1)
                self._client.expire(guard.ousted, max(guard.ttl, *lives))
            self._client.set(guard.key, guard.owner, ex=guard.ttl)
        return None

    def _push_one(self, job: Outgoing) -> str | None:
        pipe = self._client.pipeline(transaction=True)
        if job.at is not None:
            pipe.zadd(self._keys.schedule, {job.payload: job.at})
            leave_token(pipe, self._keys.due_tokens)
        else:
            pipe.sadd(self._keys.queues, job.queue)
            self._put(pipe, job.queue, job.priority, job.payload, front=False)
        self._effects.join(pipe, job.effects, job.payload)
        problem = self._first_error(pipe)
        if problem is None:
            self._effects.follow(job.effects)
        return problem

    # Workers.

    def exchange(self, request: ExchangeRequest) -> ExchangeReply:
        verdicts: list[int | str] = []
        jobs: list[Taken] = []
        errors: list[str] = []
        due_ms, counted = -1, False
        try:
            for each in request.settlements:
                verdicts.append(self._settle(each))
            self._count("processed", len(request.acknowledged))
            counted = bool(request.acknowledged)
            if counted and request.notes:
                self.apply(request.notes)
            self._fetch(request, jobs, errors)
            due_ms = self._due_ms()
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

    def apply(self, effects: Sequence[Effect]) -> None:
        """Carry out effects on their own; one that fails does not stop the others."""
        self._apply(effects)

    def _apply(self, effects: Sequence[Effect], job: bytes | None = None) -> None:
        pipe = self._client.pipeline(transaction=True)
        self._effects.join(pipe, effects, job)
        pipe.execute(raise_on_error=False)
        self._effects.follow(effects)

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
                self._pop(name, request.wanted - len(jobs), found)
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
            self._bury(pipe, payload, now)
        elif payload is not None and settlement.disposition == "front":
            self._put(pipe, settlement.queue, settlement.priority, payload, front=True)
        self._effects.join(pipe, settlement.effects, payload)
        problem = self._first_error(pipe)
        if problem is not None:
            return problem
        self._effects.follow(settlement.effects)
        if settlement.counter:
            self._count(settlement.counter, 1)
        return 1

    def _pop(self, queue: str, wanted: int, found: list[bytes]) -> None:
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

    def mark_started(self, identity: str, ticket: int) -> bool:
        return True  # what runs is not in Redis here, so a crash never re-runs it

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
        return DueJobs(batches[0], batches[1], 0 if full else self._due_ms(later_than=now), errors)

    def _due_ms(self, later_than: float | None = None) -> int:
        heads = []
        for key in (self._keys.schedule, self._keys.retry):
            low = "-inf" if later_than is None else f"({later_than}"
            try:
                found = self._client.zrangebyscore(key, low, "+inf", 0, 1, withscores=True)
            except redis.ResponseError:
                continue  # `due` names this key in its errors
            heads += [score for _, score in found]
        return max(0, int((min(heads) - time.time()) * 1000) + 1) if heads else -1

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
                    self._put(pipe, move.queue, move.priority, move.payload, front=False)
                else:
                    self._bury(pipe, move.payload, time.time())
                pipe.zrem(source, move.member)
                self._effects.join(pipe, move.effects, move.member)
                try:
                    pipe.execute(raise_on_error=False)
                except redis.WatchError:
                    continue
            self._effects.follow(move.effects)
            if not move.queue:
                self._count("failed", 1)
            return 1

    def beat(self, beat: Beat) -> BeatReply:
        keys, identity = self._keys, beat.identity
        pipe = self._client.pipeline(transaction=True)
        pipe.hset(
            keys.process(identity),
            mapping={
                "info": beat.info,
                "busy": beat.busy,
                "quiet": "true" if beat.quiet else "false",
                "beat": f"{time.time():.6f}",
            },
        )
        pipe.expire(keys.process(identity), PRESENCE_TTL)
        pipe.sadd(keys.processes, identity)
        pipe.expire(keys.processes, HOST_TTL)
        pipe.sadd(keys.queues, *beat.queues)
        pipe.get(keys.bulletin)
        pipe.get(keys.signal(identity))
        pipe.time()
        answers = pipe.execute(raise_on_error=False)
        errors = [str(each) for each in answers if isinstance(each, Exception)]
        for vital in (answers[0], answers[-1]):
            if isinstance(vital, Exception):
                raise vital
        command = read_command(answers[-2]) if isinstance(answers[-2], bytes) else None
        seconds, micros = answers[-1]
        bulletin = answers[-3] if isinstance(answers[-3], bytes) else b"0"
        number = int(bulletin) if bulletin.isdigit() else 0
        return BeatReply(seconds + micros / 1e6, command, errors, number)

    def leave(self, identity: str, host: str = "") -> int:
        keys = self._keys
        pipe = self._client.pipeline(transaction=True)
        pipe.delete(keys.process(identity), keys.signal(identity))
        pipe.srem(keys.processes, identity)
        pipe.execute()
        return 0

    def remove(
        self, key: str, members: Sequence[tuple[bytes, tuple[Effect, ...]]]
    ) -> list[int | str]:
        is_list = text(self._client.type(key)) == "list"
        verdicts: list[int | str] = []
        for member, effects in members:
            try:
                found = (
                    self._client.lrem(key, 1, member) if is_list else self._client.zrem(key, member)
                )
            except redis.ResponseError as error:
                verdicts.append(str(error))
                continue
            if found and effects:
                self._apply(effects, member)
            verdicts.append(found)
        return verdicts

    def resume(self, queue: str) -> bool:
        was_paused = self._client.srem(self._keys.paused, queue)
        leave_token(self._client, self._keys.queue(queue).tokens)
        return bool(was_paused)

    def signal(self, identity: str, command: str) -> bool:
        keys = self._keys
        if not self._client.exists(keys.process(identity)):
            return False
        self._client.set(keys.signal(identity), f"{command} {secrets.token_hex(6)}", ex=SIGNAL_TTL)
        return True

    # Pieces.

    def _put(self, pipe: Any, queue: str, priority: int, payload: bytes, *, front: bool) -> None:
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

    def _bury(self, pipe: Any, payload: bytes, now: float) -> None:
        pipe.zadd(self._keys.dead, {payload: now})
        pipe.zremrangebyscore(self._keys.dead, "-inf", now - self._dead_max_age)
        pipe.zremrangebyrank(self._keys.dead, 0, -(self._dead_max_jobs + 1))

    def _count(self, field: str, by: int) -> None:
        if not by:
            return
        hour = self._keys.throughput(current_hour())
        pipe = self._client.pipeline(transaction=True)
        pipe.incrby(self._keys.processed if field == "processed" else self._keys.failed, by)
        pipe.hincrby(hour, field, by)
        pipe.expire(hour, 90_000)
        pipe.execute(raise_on_error=False)

    @staticmethod
    def _first_error(pipe: Any) -> str | None:
        """Run the transaction; the text of the first reply that is an error of one key."""
        answers: Iterable[object] = pipe.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, redis.ResponseError):
                return str(answer)
            if isinstance(answer, Exception):
                raise answer
        return None
