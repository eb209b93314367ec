"""What Redis keeps of periodic entries.

* `periodic:last:<entry>:<digest>` string, 400 days: the last slot that became a job or was given up. The
digest is of cron line and zone, so another schedule under the same name begins anew.
* `periodic:running:<entry>` string, 24 h, owner the jid: the run that an entry with `unique_run` waits for.
* `periodic:ledger:<entry>` list: the newest 50 slots as JSON. `periodic:outcomes:<entry>` list: the newest
200 ends of runs. Both 400 days after the last.
* `periodic:entries` hash: the entries as the worker that started last knows them, for pages.
* `periodic:disabled` set: names of entries that are switched off.
"""

from __future__ import annotations

import json
from typing import Any, cast

import redis

from django_cogworker.features.periodic.entry import Entry
from django_cogworker.store.scripted import text
from django_cogworker.store.store import Store, get_store
from django_cogworker.store.values import Effect

LAST_TTL = 400 * 86_400
#: Longer than any pause in which nobody extends it.
LOCK_TTL = 86_400
LEDGER = 50
OUTCOMES = 200


class Records:
    """The keys of the feature in one store."""

    def __init__(self, store: Store | None = None) -> None:
        self.store = store or get_store()
        self._of = self.store.keys.of
        self.client: Any = self.store.client

    def last(self, entry: Entry) -> str:
        return self._of("periodic", "last", entry.name, entry.digest)

    def running(self, name: str) -> str:
        return self._of("periodic", "running", name)

    def ledger(self, name: str) -> str:
        return self._of("periodic", "ledger", name)

    def outcomes(self, name: str) -> str:
        return self._of("periodic", "outcomes", name)

    @property
    def entries(self) -> str:
        return self._of("periodic", "entries")

    @property
    def disabled(self) -> str:
        return self._of("periodic", "disabled")

    def noted(self, name: str, line: dict[str, Any]) -> tuple[Effect, ...]:
        """Effects that add a line to the ledger."""
        key = self.ledger(name)
        return (
            Effect("append", key, (json.dumps(line), LEDGER)),
            Effect("expire", key, (LAST_TTL,)),
        )

    def ended(self, name: str, slot: int, jid: str, outcome: str) -> tuple[Effect, ...]:
        """Effects that note how the run of a slot ended."""
        key = self.outcomes(name)
        return (
            Effect("append", key, (f"{slot} {jid} {outcome}", OUTCOMES)),
            Effect("expire", key, (LAST_TTL,)),
        )

    def prime(self, entry: Entry, slot: int) -> None:
        """Begin after that slot, unless it has begun."""
        self.client.set(self.last(entry), slot, nx=True, ex=LAST_TTL)

    def raise_to(self, entry: Entry, slot: int, line: dict[str, Any] | None = None) -> bool:
        """Count a slot as dealt with, without a job; false where somebody was first."""
        key = self.last(entry)

        def claim(pipe: Any) -> bool:
            had = pipe.get(key)
            pipe.multi()
            if had is not None and had.isdigit() and int(had) >= slot:
                return False
            pipe.set(key, slot, ex=LAST_TTL)
            if line is not None:
                ledger = self.ledger(entry.name)
                pipe.rpush(ledger, json.dumps(line))
                pipe.ltrim(ledger, -LEDGER, -1)
                pipe.expire(ledger, LAST_TTL)
            return True

        return bool(self.client.transaction(claim, key, value_from_callable=True))

    def publish(self, found: tuple[Entry, ...]) -> None:
        """Replace what is published by exactly these entries."""
        pipe = self.client.pipeline(transaction=True)
        pipe.delete(self.entries)
        if found:
            pipe.hset(self.entries, mapping={each.name: each.published() for each in found})
        pipe.execute()

    def published(self) -> dict[str, dict[str, Any]]:
        """The published entries by name; what cannot be read is left out."""
        try:
            raw = self.client.hgetall(self.entries)
        except redis.ResponseError:
            return {}
        found = {}
        for name, value in raw.items():
            try:
                found[text(name)] = dict(json.loads(value))
            except (ValueError, TypeError):
                continue
        return found

    def read_ledger(self, name: str) -> list[dict[str, Any]]:
        """The newest slots, the newest first, each with what became of it."""
        pipe = self.client.pipeline(transaction=False)
        pipe.lrange(self.ledger(name), 0, -1)
        pipe.lrange(self.outcomes(name), 0, -1)
        lines, ends = pipe.execute()
        by_jid = {}
        for each in ends:
            _, jid, outcome = text(each).split(" ", 2)
            by_jid[jid] = outcome
        found = []
        for each in reversed(lines):
            line = cast("dict[str, Any]", json.loads(each))
            if line.get("jid"):
                line["outcome"] = by_jid.get(line["jid"], "enqueued")
            found.append(line)
        return found
