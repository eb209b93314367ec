"""What Redis keeps of periodic entries.

* `periodic:last:<entry>:<digest>` string, 400 days: the last slot that became a job or was given up. The
digest is of cron line and zone, so another schedule under the same name begins anew.
* `periodic:running:<entry>` string, owner the jid: the run that an entry with `unique_run` waits for.
`COGWORKER_UNIQUE_LOCK_TTL` while that waits, the orphan threshold and 120 s more while it runs.
* `periodic:ledger:<entry>` list: the newest 50 slots as JSON. `periodic:outcomes:<entry>` list: the newest
200 ends of runs. Both 400 days after the last.
* `periodic:entries` hash: the entries as the worker that started last knows them, for pages.
* `periodic:disabled` set: names of entries that are switched off.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from typing import Any

import redis

from django_cogworker.conf import get_config
from django_cogworker.features.periodic.entry import Entry
from django_cogworker.store.foreign import Shape, a_number, a_text, or_none, record, tell_once
from django_cogworker.store.quarantine import Misplaced
from django_cogworker.store.scripted import text
from django_cogworker.store.store import Store, get_store
from django_cogworker.store.values import Effect

logger = logging.getLogger("django_cogworker")

LAST_TTL = 400 * 86_400
#: The lock of a running job outlives its worker by this much more than recovery needs (seconds).
MARGIN = 120
LEDGER = 50
OUTCOMES = 200
#: A last slot that lies further ahead than this is none: only a broken clock, or another hand, wrote it (seconds).
AHEAD = 86_400
#: So many of the newest outcomes are looked at where only the newest slot is wanted.
RECENT = 20
#: What the fields of a line in the ledger are.
_LINE: dict[str, Shape] = {
    **dict.fromkeys(("slot", "at"), a_number),
    **dict.fromkeys(("first", "count"), or_none(a_number)),
    **dict.fromkeys(("jid", "skipped"), or_none(a_text)),
}


def waiting_ttl(wait: float = 0.0) -> int:
    """Life of the lock of a job that is due in so many seconds, then waits for its turn."""
    return math.ceil(wait + get_config().unique_lock_ttl)


def running_ttl() -> int:
    """Life of the lock of a job that runs, from the last beat of its worker."""
    return math.ceil(get_config().orphan_threshold + MARGIN)


def slot_in(raw: Any, now: float) -> int | None:
    """The last slot as Redis has it, or `None` where that can be none."""
    if not isinstance(raw, (bytes, str)) or not raw.isdigit() or len(raw) > 15:
        return None
    slot = int(raw)
    return slot if slot <= now + AHEAD else None


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

    def types(self, names: Sequence[str]) -> dict[str, str]:
        """The keys of these entries, and which type each has; without the last slots, which are put right
        with a line in the ledger: see `begin_anew`.
        """
        found = {self.entries: "hash", self.disabled: "set"}
        for name in names:
            found[self.running(name)] = "string"
            found[self.ledger(name)] = found[self.outcomes(name)] = "list"
        return found

    def noted(self, name: str, lines: Sequence[dict[str, Any]]) -> tuple[Effect, ...]:
        """Effects that add lines to the ledger."""
        key = self.ledger(name)
        added = [Effect("append", key, (json.dumps(each), LEDGER)) for each in lines]
        return (*added, Effect("expire", key, (LAST_TTL,)))

    def ended(self, name: str, slot: int, jid: str, outcome: str) -> tuple[Effect, ...]:
        """Effects that note how the run of a slot ended."""
        key = self.outcomes(name)
        return (
            Effect("append", key, (f"{slot} {jid} {outcome}", OUTCOMES)),
            Effect("expire", key, (LAST_TTL,)),
        )

    def read_last(self, entry: Entry, now: float) -> int | None:
        """The last slot, if there is one that can be."""
        try:
            return slot_in(self.client.get(self.last(entry)), now)
        except redis.ResponseError as error:
            if is_wrong_type(error):
                return None
            raise

    def prime(self, entry: Entry, slot: int) -> None:
        """Begin after that slot, unless it has begun."""
        self.client.set(self.last(entry), slot, nx=True, ex=LAST_TTL)

    def raise_to(
        self, entry: Entry, slot: int, now: float, lines: Sequence[dict[str, Any]] = ()
    ) -> bool:
        """Count a slot as dealt with, without a job; false where somebody was first."""
        key = self.last(entry)

        def claim(pipe: Any) -> bool:
            had = slot_in(pipe.get(key), now)
            pipe.multi()
            if had is not None and had >= slot:
                return False
            pipe.set(key, slot, ex=LAST_TTL)
            if lines:
                ledger = self.ledger(entry.name)
                pipe.rpush(ledger, *map(json.dumps, lines))
                pipe.ltrim(ledger, -LEDGER, -1)
                pipe.expire(ledger, LAST_TTL)
            return True

        return bool(self.client.transaction(claim, key, value_from_callable=True))

    def begin_anew(self, entry: Entry, slot: int, now: float, line: dict[str, Any]) -> bool:
        """Put right a last slot that is none; false where somebody else did. What a key of the wrong type
        holds is kept, as the key guard does it.
        """
        key = self.last(entry)
        found = text(self.client.type(key))
        if found not in ("string", "none"):
            copy = self.store.quarantine.put_away(Misplaced(key, "string", found))
            if copy is not None:
                logger.error("The key %s was a %s; what it held lies in %s.", key, found, copy)
        return self.raise_to(entry, slot, now, (line,))

    def keep(self, found: tuple[Entry, ...]) -> None:
        """Entries that are still there are not forgotten, however seldom they are due."""
        pipe = self.client.pipeline(transaction=False)
        for each in found:
            pipe.expire(self.last(each), LAST_TTL)
        pipe.execute()

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
        return self._ledgers([name], LEDGER, OUTCOMES)[name]

    def newest(self, names: Sequence[str]) -> dict[str, dict[str, Any] | None]:
        """The newest slot of each entry, or `None`, in one round trip."""
        ledgers = self._ledgers(names, 1, RECENT)
        return {name: next(iter(lines), None) for name, lines in ledgers.items()}

    def _ledgers(
        self, names: Sequence[str], lines: int, outcomes: int
    ) -> dict[str, list[dict[str, Any]]]:
        """The newest so many lines of each ledger, looked up among so many of the newest outcomes."""
        pipe = self.client.pipeline(transaction=False)
        for name in names:
            pipe.lrange(self.ledger(name), -lines, -1)
            pipe.lrange(self.outcomes(name), -outcomes, -1)
        replies = list(map(_elements, pipe.execute(raise_on_error=False)))
        return {
            name: _with_outcomes(replies[2 * at], replies[2 * at + 1])
            for at, name in enumerate(names)
        }


def _with_outcomes(lines: Sequence[bytes], ends: Sequence[bytes]) -> list[dict[str, Any]]:
    """The lines, the newest first; what is none is left out."""
    by_jid = {}
    for each in ends:
        _, _, end = text(each).partition(" ")
        jid, _, outcome = end.partition(" ")
        by_jid[jid] = outcome
    found = []
    for each in reversed(lines):
        line = _line(each)
        if line is None:
            tell_once("the ledger of a periodic entry", each)
            continue
        if line.get("jid"):
            line["outcome"] = by_jid.get(line["jid"], "enqueued")
        found.append(line)
    return found


def is_wrong_type(reply: Any) -> bool:
    return isinstance(reply, redis.ResponseError) and "WRONGTYPE" in str(reply)


def _elements(reply: Any) -> list[bytes]:
    """Of a list; none where the key has another type."""
    if is_wrong_type(reply):
        return []
    if isinstance(reply, Exception):
        raise reply
    found: list[bytes] = reply
    return found


def _line(raw: bytes) -> dict[str, Any] | None:
    line = record(raw)
    if line is None or not a_number(line.get("slot")):
        return None
    return line if all(fits(line[name]) for name, fits in _LINE.items() if name in line) else None
