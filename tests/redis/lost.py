"""Help for the tests of recovery without processes: workers that hold jobs and fell silent."""

from __future__ import annotations

import json
from typing import Any

from django_cogworker.conf import get_config
from django_cogworker.store.store import Store
from django_cogworker.store.values import ExchangeRequest, Outgoing, Recovered, RecoverReply
from django_cogworker.worker.death import DeathHooks
from django_cogworker.worker.identity import Membership
from django_cogworker.worker.outage import Outage
from django_cogworker.worker.recovery import Recovery

THRESHOLD = 60
LOST = "lost:7:aaaaaaaaaaaa"


def payload(name: str, **fields: Any) -> bytes:
    fields = {"class": "shop.Gone", "jid": name, "args": [], "queue": "default", **fields}
    return json.dumps(fields, separators=(",", ":")).encode()


class Fleet:
    """What workers left in Redis; its times are Redis's."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.client: Any = store.client
        self.keys = store.keys
        self._pushes = 0

    def now(self) -> float:
        seconds, micros = self.client.time()
        return float(seconds) + float(micros) / 1e6

    def has_lived(self, seconds: float) -> None:
        """Some worker has beaten for so long without a gap."""
        self.client.set(self.keys.fleet_since, self.now() - seconds)
        self.client.set(self.keys.fleet_beat, 1)

    def beat(self, identity: str, ago: float) -> None:
        """This worker's last beat was so many seconds ago."""
        self.client.zadd(self.keys.beats, {identity: self.now() - ago})
        self.client.sadd(self.keys.processes, identity)
        self.client.hset(self.keys.process(identity), "beat", self.now() - ago)

    def hold(self, identity: str, *names: str, queue: str = "default", **fields: Any) -> None:
        """The worker fetches jobs of these names."""
        jobs = [
            Outgoing(each, queue, payload(each, queue=queue, **fields), fields.get("priority", 0))
            for each in names
        ]
        self._pushes += 1
        assert self.store.push("tests", self._pushes, jobs) == [None] * len(jobs)
        self.fetch(identity, len(names), queue)

    def fetch(self, identity: str, number: int, queue: str = "default") -> None:
        first = int(self.client.hget(self.keys.holders, identity) or 1)
        request = ExchangeRequest(identity, first, number, (queue,), (), ())
        assert len(self.store.exchange(request).jobs) == number
        self.client.delete(self.keys.queue(queue).tokens)

    def silent(self, identity: str, *names: str, ago: float = 90, **more: Any) -> None:
        """A worker that holds jobs and whose last beat was `ago` seconds back, in an old fleet."""
        self.has_lived(10_000)
        self.hold(identity, *names, **more)
        self.beat(identity, ago)

    def recover(
        self, *orphans: Recovered, identity: str = LOST, gone: bool = False
    ) -> RecoverReply:
        return self.store.recovering.recover(
            identity, host="", gone=gone, threshold=THRESHOLD, orphans=orphans
        )

    # What is where now.

    def held(self, identity: str = LOST) -> int:
        return len(self.store.recovering.held_by(identity, 10_000))

    def queued(self, queue: str = "default") -> list[str]:
        """Names of the jobs that wait, the next to run first."""
        raw = self.client.lrange(self.keys.queue(queue).jobs, 0, -1)
        return [json.loads(each)["jid"] for each in reversed(raw)]

    def members(self, key: str) -> list[dict[str, Any]]:
        return [json.loads(each) for each in self.client.zrange(key, 0, -1)]

    def dead(self) -> list[dict[str, Any]]:
        return self.members(self.keys.dead)

    def knows(self, identity: str) -> set[str]:
        """The registries in which the worker stands."""
        keys, client = self.keys, self.client
        found = {
            "processes": client.sismember(keys.processes, identity),
            "beats": client.zscore(keys.beats, identity) is not None,
            "holders": client.hexists(keys.holders, identity),
            "presence": client.exists(keys.process(identity)),
        }
        return {name for name, is_there in found.items() if is_there}


def recoverer(store: Store) -> Recovery:
    config = get_config()
    return Recovery(
        store=store,
        config=config,
        membership=Membership(),
        outage=Outage("redis"),
        death=DeathHooks(config),
        turned=lambda: None,
    )


def look(recovery: Recovery) -> int:
    """A look that asks Redis, as every fifth second."""
    recovery._next_survey = 0.0
    return recovery.look()
