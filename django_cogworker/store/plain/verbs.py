"""`Verbs` by single commands and `MULTI`: what a client, a beat and a person ask for; the rest has files of
its own.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any

import redis

from django_cogworker.conf import Config
from django_cogworker.store.keys import Keys
from django_cogworker.store.plain.effects import Effects
from django_cogworker.store.plain.exchange import Exchanger
from django_cogworker.store.plain.guards import Guards
from django_cogworker.store.plain.moving import Mover
from django_cogworker.store.plain.places import Places
from django_cogworker.store.plain.refiling import Refiler
from django_cogworker.store.plain.transaction import first_error, leave_token
from django_cogworker.store.scripted import HOST_TTL, PRESENCE_TTL, SIGNAL_TTL, read_command, text
from django_cogworker.store.values import Beat, BeatReply, Effect, Guard, Outgoing, Refusal


class PlainVerbs:
    """All of them."""

    reliable = False

    def __init__(self, client: redis.Redis, keys: Keys, config: Config) -> None:
        # redis-py types replies as the union of all that any option may give.
        self._client: Any = client
        self._keys = keys
        self._places = Places(client, keys, config)
        self._effects = Effects(client)
        self._guards = Guards(client, self._effects)
        mover = Mover(client, keys, self._places, self._effects)
        self.exchange = Exchanger(client, keys, self._places, self._effects).exchange
        self.apply = self._effects.apply
        self.due, self.graduate = mover.due, mover.graduate
        self.refile = Refiler(client, keys, self._places, self._effects).refile

    # Clients.

    def push(self, lane: str, number: int, jobs: Sequence[Outgoing]) -> list[Refusal | None]:
        verdicts: list[Refusal | None] = []
        for job in jobs:
            reason = self._guards.claim(job.guards)
            if reason is None:
                reason = self._push_one(job)
                if reason is not None:
                    self._guards.unclaim(job.guards)
            verdicts.append(None if reason is None else Refusal(reason))
        return verdicts

    def claim(self, guard: Guard) -> Refusal | None:
        """Claim a guard on its own."""
        reason = self._guards.claim((guard,))
        return None if reason is None else Refusal(reason)

    def _push_one(self, job: Outgoing) -> str | None:
        pipe = self._client.pipeline(transaction=True)
        if job.at is not None:
            pipe.zadd(self._keys.schedule, {job.payload: job.at})
            leave_token(pipe, self._keys.due_tokens)
        else:
            pipe.sadd(self._keys.queues, job.queue)
            self._places.put(pipe, job.queue, job.priority, job.payload, front=False)
        self._effects.join(pipe, job.effects, job.payload)
        problem = first_error(pipe)
        if problem is None:
            self._effects.follow(job.effects)
        return problem

    # Workers.

    def mark_started(self, identity: str, ticket: int) -> bool:
        return True  # what runs is not in Redis here, so a crash never re-runs it

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
                self._effects.apply(effects, member)
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
