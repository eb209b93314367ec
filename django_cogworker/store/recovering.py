"""The verbs of recovery: who is silent, what did a dead worker hold, bring it back.

They are scripts. A server that refuses scripts has no jobs in progress to recover.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import redis

from django_cogworker.conf import Config
from django_cogworker.store.foreign import record, texts
from django_cogworker.store.keys import Keys
from django_cogworker.store.plan import Plan
from django_cogworker.store.scripted import TOMBSTONE_TTL, current_hour, read_taken, text
from django_cogworker.store.scripts import script
from django_cogworker.store.values import Filed, Held, Recovered, RecoverReply, Survey

#: Lost processes that are kept, and for how many seconds after the last one.
MOST_LOSSES = 100
LOSSES_TTL = 30 * 86_400


class RecoveryVerbs:
    """Recovery by scripts."""

    def __init__(self, client: redis.Redis, keys: Keys, config: Config) -> None:
        self._client: Any = client
        self._keys = keys
        self._dead_bounds = [config.dead_max_jobs, int(config.dead_max_age)]

    def survey(self, host: str, silence: float, limit: int, *, full: bool) -> Survey:
        """Workers silent for longer than `silence` seconds, and those registered on `host`, with
        their facts.
        """
        keys = self._keys
        silent, neighbours, errors = script("survey").run(
            self._client,
            [keys.beats, keys.holders, keys.members, keys.host(host)],
            [silence, limit, "1" if full else "0"],
        )
        return Survey(_pairs(silent), _pairs(neighbours), [text(each) for each in errors])

    def held_by(self, identity: str, limit: int, skip: int = 0) -> list[Held]:
        """The newest jobs that the worker holds, the newest first, after the first `skip`.

        In this order they are put at the front of their queues, so that the oldest runs first again.
        """
        key = self._keys.workers(identity)
        fields = self._client.hkeys(key)
        marked = {each[1:] for each in fields if each.startswith(b"!")}
        tickets = sorted((each for each in fields if each.isdigit()), key=int, reverse=True)
        wanted = tickets[skip : skip + limit]
        if not wanted:
            return []
        failed = [each[1:] for each in fields if each.startswith(b"=")]
        filed = self._client.hmget(key, [b"=" + each for each in failed]) if failed else []
        ends = dict(zip(failed, filed, strict=True))
        held = []
        for ticket, value in zip(wanted, self._client.hmget(key, wanted), strict=True):
            if value is not None:
                taken = read_taken(ticket, value)
                held.append(
                    Held(
                        taken.ticket,
                        taken.queue,
                        taken.payload,
                        ticket in marked,
                        _read_filed(ends.get(ticket)),
                        ticket in ends,
                    )
                )
        return held

    def is_dead(self, payload: bytes) -> bool:
        """Whether a job lies in the dead set with exactly these bytes."""
        return self._client.zscore(self._keys.dead, payload) is not None

    def facts_of(self, identity: str) -> str:
        """The facts about a worker (JSON), or '' where none are known."""
        found = self._client.hget(self._keys.members, identity)
        return "" if found is None else text(found)

    def queues_read(self) -> set[str]:
        """Names of the queues that living workers read. O(number of workers)."""
        pipe = self._client.pipeline(transaction=False)
        for identity in self._client.smembers(self._keys.processes):
            pipe.hget(self._keys.process(text(identity)), "info")
        names: set[str] = set()
        for info in pipe.execute(raise_on_error=False):
            told = record(info) if isinstance(info, bytes) else None
            if told is not None and texts(told.get("queues")):
                names.update(told["queues"])
        return names

    def forget_absent(self) -> int:
        """Take away names of workers whose presence has expired; how many. O(number of workers).

        What they held is found by other keys. One that was only slow comes back with its next beat.
        """
        identities = sorted(self._client.smembers(self._keys.processes))
        pipe = self._client.pipeline(transaction=False)
        for each in identities:
            pipe.exists(self._keys.process(text(each)))
        present = pipe.execute(raise_on_error=False)
        gone = [each for each, found in zip(identities, present, strict=True) if found == 0]
        return int(self._client.srem(self._keys.processes, *gone)) if gone else 0

    def note_loss(self, at: float, record: str) -> None:
        """Write down a lost worker process (JSON); the same one again changes nothing."""
        pipe = self._client.pipeline(transaction=True)
        pipe.zadd(self._keys.losses, {record: at})
        pipe.zremrangebyrank(self._keys.losses, 0, -MOST_LOSSES - 1)
        pipe.expire(self._keys.losses, LOSSES_TTL)
        pipe.execute()

    def losses(self) -> list[bytes]:
        """The records of lost worker processes, the newest first."""
        found: list[bytes] = self._client.zrange(self._keys.losses, 0, -1, desc=True)
        return found

    def recover(
        self,
        identity: str,
        *,
        host: str,
        gone: bool,
        threshold: float,
        orphans: Sequence[Recovered],
    ) -> RecoverReply:
        """Judge the worker dead (`gone`: the caller knows) and move these jobs of it."""
        keys = self._keys
        plan = Plan(
            keys,
            [
                keys.workers(identity),
                keys.holders,
                keys.beats,
                keys.fleet_since,
                keys.tombstone(identity),
                keys.members,
                keys.processes,
                keys.process(identity),
                keys.schedule,
                keys.dead,
                keys.failed,
                keys.throughput(current_hour()),
                keys.queues,
                keys.host(host),
                keys.retry,
                keys.fleet_beat,
            ],
        )
        args: list[Any] = [
            identity,
            "gone" if gone else "silent",
            threshold,
            TOMBSTONE_TTL,
            *self._dead_bounds,
            "",
        ]
        items = []
        for each in orphans:
            args.append(each.payload)
            items.append(
                {
                    "t": str(each.held.ticket),
                    "d": each.disposition,
                    "p": len(args),
                    "s": each.delay,
                    "k": plan.queue(each.queue) if each.disposition == "front" else 0,
                    "r": each.priority,
                    "q": each.queue,
                    "m": int(each.held.marked),
                    "f": int(each.held.noted),
                    "e": plan.effects(each.effects),
                }
            )
        args[6] = json.dumps(items)
        dead, verdicts, left = script("recover").run(self._client, plan.keys, args)
        return RecoverReply(
            dead == 1, [each if isinstance(each, int) else text(each) for each in verdicts], left
        )


def _read_filed(value: bytes | None) -> Filed | None:
    head, _, payload = (value or b"").partition(b"\n")
    place, _, at = head.partition(b" ")
    try:
        return Filed("dead" if place == b"dead" else "retry", float(at), payload)
    except ValueError:
        return None


def _pairs(flat: Sequence[bytes]) -> list[tuple[str, str]]:
    return [(text(flat[at]), text(flat[at + 1])) for at in range(0, len(flat), 2)]
