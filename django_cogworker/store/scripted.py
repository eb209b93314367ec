"""The verbs as Lua scripts: each one step, each safe to repeat."""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Sequence
from typing import Any

import redis

from django_cogworker.conf import Config
from django_cogworker.store.keys import Keys
from django_cogworker.store.plan import Plan
from django_cogworker.store.refiling import SOON, Refiling, refile_by_script
from django_cogworker.store.scripts import script
from django_cogworker.store.values import (
    Beat,
    BeatReply,
    DueJobs,
    Effect,
    ExchangeReply,
    ExchangeRequest,
    Move,
    Outgoing,
    Refusal,
    Settlement,
    Taken,
)

logger = logging.getLogger("django_cogworker")

#: Seconds that the result of a push is kept for a repeat: far more than a client goes on repeating.
LANE_TTL = 900
PRESENCE_TTL = 60
#: What cannot be moved to its queue waits so long before the next try, so that it starves nobody (seconds).
POSTPONE = 60
#: A remote command waits so long for its worker: through an outage (seconds).
SIGNAL_TTL = 3600
#: The workers of a host are remembered so long after the last beat of any of them.
HOST_TTL = 7 * 86_400
#: For so long a late packet of a worker that is gone may still arrive.
TOMBSTONE_TTL = 86_400
#: Digits of a ticket at the most: what Redis can count to.
MAX_TICKET = 19


def current_hour() -> int:
    return int(time.time() // 3600)


class ScriptedVerbs:
    """`Verbs` by scripts."""

    reliable = True

    def __init__(self, client: redis.Redis, keys: Keys, config: Config) -> None:
        self._client = client
        self._keys = keys
        self._dead_bounds = [config.dead_max_jobs, int(config.dead_max_age)]

    # Clients.

    def push(self, lane: str, number: int, jobs: Sequence[Outgoing]) -> list[Refusal | None]:
        keys = self._keys
        plan = Plan(keys, [keys.lane(lane), keys.queues, keys.schedule, keys.due_tokens])
        extras: dict[str, Any] = {}
        args: list[Any] = [number, LANE_TTL, "", SOON]
        group: tuple[str, str] | None = None
        counted_at = 0
        for place, job in enumerate(jobs, 1):
            extra = bool(job.guards or job.effects)
            if extra:
                extras[str(place)] = {
                    "g": plan.guards(job.guards),
                    "e": plan.effects(job.effects),
                }
            kind = "schedule" if job.at is not None else "priority" if job.priority else "list"
            if group != (kind, job.queue) or (extra and kind == "list"):
                base = 0 if kind == "schedule" else plan.queue(job.queue)
                args += (kind, base, job.queue, 0)
                counted_at = len(args) - 1
                group = None if extra and kind == "list" else (kind, job.queue)
            args[counted_at] += 1
            if kind == "schedule":
                args += (f"{job.at:.6f}", job.payload)
            elif kind == "priority":
                args += (job.priority, job.payload)
            else:
                args.append(job.payload)
        if extras:
            args[2] = json.dumps(extras)
        answer = script("push").run(self._client, plan.keys, args)
        verdicts: list[Refusal | None] = [None] * len(jobs)
        if answer != b"[]":
            for place, reason in json.loads(answer):
                verdicts[int(place) - 1] = Refusal(reason)
        return verdicts

    # Workers.

    def exchange(self, request: ExchangeRequest) -> ExchangeReply:
        keys, identity = self._keys, request.identity
        plan = Plan(
            keys,
            [
                keys.workers(identity),
                keys.holders,
                keys.tombstone(identity),
                keys.paused,
                keys.processed,
                keys.failed,
                keys.throughput(current_hour()),
                keys.schedule,
                keys.retry,
                keys.dead,
                keys.bulletin,
            ],
        )
        for name in request.queues:
            plan.queue(name)
        args: list[Any] = [
            identity,
            request.first_ticket,
            request.wanted,
            len(request.queues),
            *self._dead_bounds,
            "",
            json.dumps(plan.effects(request.notes)) if request.notes else "",
            len(request.acknowledged),
            *request.acknowledged,
            *request.queues,
        ]
        if request.settlements:
            args[6] = json.dumps([self._item(each, plan, args) for each in request.settlements])
        status, upto, due, verdicts, jobs, errors, bulletin = script("exchange").run(
            self._client, plan.keys, args
        )
        return ExchangeReply(
            buried=status == 0,
            next_ticket=int(upto),
            due_ms=due,
            verdicts=[each if isinstance(each, int) else text(each) for each in verdicts],
            jobs=[read_taken(jobs[at], jobs[at + 1]) for at in range(0, len(jobs), 2)],
            errors=[text(each) for each in errors],
            bulletin=bulletin,
        )

    @staticmethod
    def _item(settlement: Settlement, plan: Plan, args: list[Any]) -> dict[str, Any]:
        place = 0
        if settlement.payload is not None:
            args.append(settlement.payload)
            place = len(args)
        return {
            "t": str(settlement.ticket),
            "d": settlement.disposition,
            "p": place,
            "s": settlement.delay,
            "k": plan.queue(settlement.queue) if settlement.disposition == "front" else 0,
            "r": settlement.priority,
            "c": settlement.counter,
            "e": plan.effects(settlement.effects),
        }

    def mark_started(self, identity: str, ticket: int) -> bool:
        run = script("mark_started").run
        return bool(run(self._client, [self._keys.workers(identity)], [ticket]))

    def due(self, limit: int) -> DueJobs:
        keys = self._keys
        scheduled, retrying, wait, errors = script("due").run(
            self._client, [keys.schedule, keys.retry], [limit]
        )
        return DueJobs(scheduled, retrying, wait, [text(each) for each in errors])

    def graduate(self, source: str, moves: Sequence[Move]) -> list[int | str]:
        keys = self._keys
        plan = Plan(
            keys, [source, keys.queues, keys.dead, keys.failed, keys.throughput(current_hour())]
        )
        args: list[Any] = [*self._dead_bounds, POSTPONE]
        for move in moves:
            base = plan.queue(move.queue) if move.queue else 0
            effects = json.dumps(plan.effects(move.effects)) if move.effects else ""
            args += (base, move.queue, move.priority, move.member, move.payload, effects)
        answer = script("graduate").run(self._client, plan.keys, args)
        return [each if isinstance(each, int) else text(each) for each in answer]

    def beat(self, beat: Beat) -> BeatReply:
        keys, identity = self._keys, beat.identity
        now, command, errors, bulletin, buried = script("beat").run(
            self._client,
            [
                keys.process(identity),
                keys.processes,
                keys.beats,
                keys.fleet_since,
                keys.queues,
                keys.signal(identity),
                keys.members,
                keys.host(beat.host),
                keys.fleet_beat,
                keys.bulletin,
                keys.tombstone(identity),
            ],
            [
                identity,
                PRESENCE_TTL,
                round(beat.gap * 1000),
                beat.facts,
                HOST_TTL,
                beat.info,
                beat.busy,
                "true" if beat.quiet else "false",
                *beat.queues,
            ],
        )
        return BeatReply(
            float(now),
            read_command(command),
            [text(each) for each in errors],
            bulletin,
            bool(buried),
        )

    def leave(self, identity: str, host: str = "") -> int:
        keys = self._keys
        return int(
            script("leave").run(
                self._client,
                [
                    keys.process(identity),
                    keys.processes,
                    keys.beats,
                    keys.signal(identity),
                    keys.workers(identity),
                    keys.holders,
                    keys.tombstone(identity),
                    keys.members,
                    keys.host(host),
                ],
                [identity, TOMBSTONE_TTL],
            )
        )

    def remove(
        self, key: str, members: Sequence[tuple[bytes, tuple[Effect, ...]]]
    ) -> list[int | str]:
        plan = Plan(self._keys, [key])
        args: list[Any] = []
        for member, effects in members:
            args += (member, json.dumps(plan.effects(effects)) if effects else "")
        answer = script("remove").run(self._client, plan.keys, args)
        return [each if isinstance(each, int) else text(each) for each in answer]

    def refile(self, source: str, items: Sequence[Refiling]) -> list[int | str]:
        return refile_by_script(self._client, self._keys, self._dead_bounds, source, items)

    def apply(self, effects: Sequence[Effect]) -> None:
        plan = Plan(self._keys, [])
        packed = json.dumps(plan.effects(effects))
        for each in script("apply").run(self._client, plan.keys, [packed]):
            logger.error("Redis could not carry out an effect: %s", text(each))

    def resume(self, queue: str) -> bool:
        names = self._keys.queue(queue)
        return bool(
            script("resume").run(
                self._client,
                [self._keys.paused, names.jobs, names.priority, names.tokens],
                [queue],
            )
        )

    def signal(self, identity: str, command: str) -> bool:
        keys = self._keys
        return bool(
            script("signal").run(
                self._client,
                [keys.process(identity), keys.signal(identity)],
                [command, secrets.token_hex(6), SIGNAL_TTL],
            )
        )


def text(value: bytes | str) -> str:
    """A reply of the server as text; what is not UTF-8 is shown escaped."""
    return value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")


def read_taken(ticket: bytes, value: bytes) -> Taken:
    head, _, payload = value.partition(b"\n")
    fetched, _, queue = head.partition(b" ")
    try:
        return Taken(int(ticket), queue.decode(), int(fetched), payload)
    except ValueError:
        # Other hands were at it: it goes the way of all that is no job.
        return Taken(int(ticket), "default", 0, value)


def is_ticket(field: bytes) -> bool:
    """Whether a field of what a worker holds is a job's ticket: marks beside jobs are not, nor what others wrote."""
    return field.isdigit() and len(field) <= MAX_TICKET


def read_command(value: bytes) -> tuple[str, str] | None:
    word, _, number = text(value).partition(" ")
    return (word, number) if number else None
