"""The model's scripts do what the real ones do: the same calls by chance, on both sides.

After each call the replies are compared, and all that Redis holds. The calls go beyond what clients
and workers would send: tickets of others, repeats, identities that are buried.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from django_cogworker.store.refiling import Refiling
from django_cogworker.store.store import Store, get_store
from django_cogworker.store.values import (
    Beat,
    ExchangeRequest,
    Held,
    Move,
    Outgoing,
    Recovered,
    Settlement,
)
from tests.model import scripts
from tests.model.rules import Size
from tests.model.sizes import TODAY
from tests.model.states import (
    End,
    Entry,
    Exchange,
    Fate,
    Graduate,
    Identity,
    Item,
    Leave,
    Mark,
    Orphan,
    Push,
    Recover,
    Redis,
    Refile,
    State,
    Waiting,
)
from tests.model.steps import beginning

JOBS, IDENTITIES, LANES, CALLS = 40, 3, 2, 150


def name(identity: int) -> str:
    return f"host:{identity}:abcdefabcdef"


def payload(job: int, identity: int = -1, ticket: int = 0) -> bytes:
    """The bytes of a job; other ones for each stay with a worker."""
    stay = [identity, ticket]
    return json.dumps({"class": "x", "jid": str(job), "args": [], "stay": stay}).encode()


def job_of(raw: bytes) -> int:
    return int(json.loads(raw)["jid"])


class Both:
    """The model's state and a real Redis, which are called alike."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.chance = random.Random(seed)
        size = Size(jobs=JOBS, pushed=0, workers=IDENTITIES)
        self.model = beginning(size)
        self._pushed = 0
        identities = (Identity(),) * IDENTITIES
        redis = self.model.redis._replace(identities=identities, lanes=(0,) * LANES)
        self.model = self.model._replace(redis=redis)

    def call(self) -> str:
        calls: list[Callable[[], object]] = [self.push, self.exchange, self.mark, self.graduate]
        calls += [self.push, self.exchange, self.exchange, self.beat]
        if self.chance.random() < 0.3:
            calls = [self.leave, self.recover, self.recover, self.refile]
        chosen = self.chance.choice(calls)
        chosen()
        return chosen.__name__

    def push(self) -> None:
        lane = self.chance.randrange(LANES)
        number = self.model.redis.lanes[lane]
        if not number or (self.chance.random() < 0.7 and self._pushed < JOBS):
            number += 1
            self._pushed += 1
        job = self._pushed - 1
        self.model = scripts.push(self.model, Push(lane, number, job), TODAY)
        outgoing = Outgoing(str(job), "default", payload(job))
        assert self.store.push(f"lane{lane}", number, [outgoing]) == [None]

    def exchange(self) -> None:
        identity, own = self._any_identity()
        ends: tuple[End, ...] = ("ack", "retry", "front", "dead", "drop")
        items = [
            Item(each.ticket, each.job, self.chance.choice(ends))
            for each in own.entries
            if self.chance.random() < 0.4
        ]
        if self.chance.random() < 0.3:
            items.append(Item(self.chance.choice((90, 91)), 0, self.chance.choice(ends)))
        first = max(1, own.granted + self.chance.choice((0, 0, 0, -1, -2)))
        looks = self.chance.random() < 0.8
        packet = Exchange(identity, first, self.chance.randrange(4), looks, tuple(items))
        self.model, expected = scripts.exchange(self.model, packet, TODAY)
        marked = {each.ticket for each in own.entries if each.marked}
        plain = [each.ticket for each in items if each.end == "ack" and each.ticket not in marked]
        reply = self.store.exchange(
            ExchangeRequest(
                name(identity),
                first,
                packet.wanted,
                ["default"] if looks else [],
                plain,
                [self._settlement(identity, each) for each in items if each.ticket not in plain],
            )
        )
        assert not reply.errors
        jobs = tuple((each.ticket, job_of(each.payload)) for each in reply.jobs)
        assert (reply.buried, reply.next_ticket, jobs) == tuple(expected)

    @staticmethod
    def _settlement(identity: int, item: Item) -> Settlement:
        text = payload(item.job, identity, item.ticket)
        if item.end in ("ack", "drop"):
            return Settlement(item.ticket, "ack")
        if item.end == "front":
            return Settlement(item.ticket, "front", text, queue="default")
        return Settlement(item.ticket, "retry" if item.end == "retry" else "dead", text)

    def mark(self) -> None:
        identity, own = self._any_identity()
        ticket = self.chance.choice([each.ticket for each in own.entries] + [90])
        self.model, expected = scripts.mark_started(self.model, Mark(identity, ticket), TODAY)
        assert self.store.mark_started(name(identity), ticket) == expected

    def graduate(self) -> None:
        known = [*self.model.redis.waiting, Waiting(0, 0, 90)]
        member = self.chance.choice(known)
        self.model = scripts.graduate(self.model, Graduate(member), TODAY)
        text = payload(*member)
        keys = self.store.keys
        scheduled = self.store.client.zscore(keys.schedule, text) is not None
        source = keys.schedule if scheduled else keys.retry
        verdicts = self.store.graduate(source, [Move(text, text, "default")])
        assert verdicts == [int(member in known[:-1])]

    def refile(self) -> None:
        """A wish for a job in any place, or for one that is not there (any more)."""
        redis, keys, client = self.model.redis, self.store.keys, self.store.client
        source: Any = self.chance.choice(("waiting", "queue", "dead"))
        places: dict[str, Any] = {
            "queue": ("retry", "dead", "gone"),
            "dead": ("queue", "retry", "gone"),
        }
        to: Any = self.chance.choice(places.get(source, ("queue", "dead", "gone")))
        key, found = keys.retry, [payload(*each) for each in redis.waiting]
        if source == "queue":
            key = keys.queue("default").jobs
            found = client.lrange(key, 0, -1)  # type: ignore[assignment]
        elif source == "dead":
            key = keys.dead
            found = client.zrange(key, 0, -1)  # type: ignore[assignment]
        text = self.chance.choice([*found, payload(0, 0, 90)])
        member = Waiting(job_of(text), *json.loads(text)["stay"])
        if source == "waiting" and client.zscore(keys.schedule, text) is not None:
            key = keys.schedule
        self.model, expected = scripts.refile(
            self.model,
            Refile(source, member, to) if text in found else Refile("waiting", member, to),
        )
        far = self.chance.choice((-1, 0, 1, 5))
        item = Refiling(text, to, text, "default", at=None if to == "queue" else 100.0, far=far)
        assert self.store.refile(key, [item]) == [int(expected)]

    def beat(self) -> None:
        identity, _ = self._any_identity()
        self.model = scripts.beat(self.model, identity)
        self.store.beat(Beat(name(identity), "{}", 0, False, ["default"]))

    def leave(self) -> None:
        identity, own = self._any_identity()
        self.model = scripts.leave(self.model, Leave(identity), TODAY)
        assert bool(self.store.leave(name(identity))) == bool(own.entries)

    def recover(self) -> None:
        identity, own = self._any_identity()
        dead = self.chance.random() < 0.5
        fates: tuple[Fate, ...] = ("front", "retry", "dead")
        read = [*(each for each in own.entries if self.chance.random() < 0.7), Entry(90, 0)]
        orphans = [
            Orphan(each.ticket, each.job, self.chance.random() < 0.5, self.chance.choice(fates))
            for each in read
        ]
        packet = Recover(identity, tuple(orphans))
        self.model = scripts.recover(self.model, packet, TODAY, dead=dead)
        reply = self.store.recovering.recover(
            name(identity),
            host="",
            gone=dead,
            threshold=3600,
            orphans=[self._recovered(identity, each) for each in orphans],
        )
        assert reply.dead == (dead or own.tombstone != "")

    @staticmethod
    def _recovered(identity: int, orphan: Orphan) -> Recovered:
        text = payload(orphan.job, identity, orphan.ticket)
        fate = "schedule" if orphan.fate == "retry" else orphan.fate
        held = Held(orphan.ticket, "default", text, orphan.marked)
        return Recovered(held, fate, text, "default")

    def _any_identity(self) -> tuple[int, Identity]:
        identity = self.chance.randrange(IDENTITIES)
        return identity, self.model.redis.identities[identity]

    def real(self) -> Redis:
        """What the real Redis holds, in the model's words."""
        client: Any = self.store.client
        keys = self.store.keys
        members = [*client.zrange(keys.schedule, 0, -1), *client.zrange(keys.retry, 0, -1)]
        texts = [json.loads(each) for each in members]
        waiting = [Waiting(int(each["jid"]), *each["stay"]) for each in texts]
        lanes = [client.get(keys.lane(f"lane{lane}")) or b"0" for lane in range(LANES)]
        queue = client.lrange(keys.queue("default").jobs, 0, -1)
        return Redis(
            tuple(job_of(each) for each in reversed(queue)),
            tuple(sorted(waiting)),
            tuple(sorted(job_of(each) for each in client.zrange(keys.dead, 0, -1))),
            tuple(int(each.split()[0]) for each in lanes),
            tuple(self._real_identity(identity) for identity in range(IDENTITIES)),
        )

    def _real_identity(self, identity: int) -> Identity:
        client, keys = self.store.client, self.store.keys
        fields: dict[Any, Any] = client.hgetall(keys.workers(name(identity)))
        entries = [
            Entry(int(ticket), job_of(value.partition(b"\n")[2]), b"!" + ticket in fields)
            for ticket, value in fields.items()
            if ticket.isdigit()
        ]
        assert all(each.isdigit() or each[1:] in fields for each in fields)
        tombstone = client.get(keys.tombstone(name(identity)))
        return Identity(
            tuple(sorted(entries)),
            int(client.hget(keys.holders, name(identity)) or 0),
            client.zscore(keys.beats, name(identity)) is not None,
            "" if not tombstone else "left" if tombstone == b"left" else "buried",
        )


@pytest.mark.parametrize("seed", range(12))
def test_the_scripts_of_the_model_and_the_real_ones_agree(redis_url: str, seed: int):
    both = Both(get_store(), seed)
    called = []
    for _ in range(CALLS):
        called.append(both.call())
        assert both.real() == without_ghosts(both.model), called
    calls = {"push", "exchange", "mark", "graduate", "beat", "leave", "recover", "refile"}
    assert calls <= set(called)


def without_ghosts(model: State) -> Redis:
    identities = tuple(
        each._replace(entries=tuple(entry._replace(started=False) for entry in each.entries))
        for each in model.redis.identities
    )
    return model.redis._replace(identities=identities)
