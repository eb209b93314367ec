"""What workers hold: the jobs that run, and the few that were fetched ahead and come next.

Three round trips, whatever lies there: the names of the workers, how many each holds, and the jobs of as many of them
as are asked for. One for the jobs of one worker.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from django_cogworker.api.records import JobRecord, fields_of
from django_cogworker.exceptions import InvalidQuery
from django_cogworker.store.scripted import is_ticket, read_taken, text
from django_cogworker.store.store import get_store

#: Workers that are asked, and fields read of each, at the most.
MOST_WORKERS = 1_000
MOST_OF_WORKER = 1_500


@dataclasses.dataclass(frozen=True, slots=True)
class Work:
    """A job in a worker's hands. `since`: when it was fetched, by Redis's clock (epoch seconds). `alive`: whether
    that worker has beaten within the last minute; if not, its jobs are brought back soon.
    """

    identity: str
    ticket: int
    queue: str
    since: float
    record: JobRecord
    alive: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """Some of the jobs in progress, and how many each worker holds (identity -> number), shown or not."""

    entries: list[Work]
    sizes: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.sizes.values())


class WorkSet:
    """The jobs in progress, worker by worker, the oldest first in each.

    Empty in basic mode, where Redis does not know what runs.
    """

    def __init__(self, identity: str | None = None) -> None:
        """Of one worker, or of all."""
        self._identity = identity
        self._store = get_store()

    def __iter__(self) -> Iterator[Work]:
        return iter(self.read())

    def __len__(self) -> int:
        return self.held(1).total

    def read(self, limit: int = 1_000) -> list[Work]:
        """At most so many. O(workers + limit)."""
        return self.held(limit).entries

    def held(self, limit: int = 1_000) -> Held:
        """At most so many, and how many there are of each worker. O(workers + limit)."""
        given: Any = limit
        if isinstance(given, bool) or not isinstance(given, int) or limit < 1:
            raise InvalidQuery(f"limit is {limit!r}; it takes a whole number above 0.")
        identities = self._identities()
        alone = self._identity is not None
        known, scans = self._ask(identities, identities if alone else ())
        asked, promised = [], 0
        for identity, (size, _) in known.items():
            if size and promised < limit:
                asked.append(identity)
                promised += size
        if not alone:
            _, scans = self._ask((), asked)
        found: list[Work] = []
        for identity, fields in zip(asked, scans, strict=False):
            if not isinstance(fields, Exception):
                found += self._of(identity, fields[1], known[identity][1], limit - len(found))
        return Held(found, {each: size for each, (size, _) in known.items()})

    def _ask(
        self, identities: Sequence[str], scanned: Sequence[str]
    ) -> tuple[dict[str, tuple[int, bool]], list[Any]]:
        """How many jobs each of these workers holds (marks beside a job count for nothing) and whether it lives; what
        the others hold.
        """
        keys = self._store.keys
        pipe: Any = self._store.client.pipeline(transaction=False)
        for each in identities:
            pipe.hkeys(keys.workers(each))
            pipe.exists(keys.process(each))
        for each in scanned:
            pipe.hscan(keys.workers(each), 0, count=MOST_OF_WORKER)
        answers = pipe.execute(raise_on_error=False)
        known = {}
        for place, each in enumerate(identities):
            fields, alive = answers[2 * place : 2 * place + 2]
            many = 0 if isinstance(fields, Exception) else sum(map(is_ticket, fields))
            known[each] = many, alive == 1
        return known, answers[2 * len(identities) :]

    def _of(self, identity: str, fields: dict[bytes, bytes], alive: bool, most: int) -> list[Work]:
        work = []
        tickets = sorted(filter(is_ticket, fields), key=int)
        for ticket in tickets[: min(most, MOST_OF_WORKER)]:
            taken = read_taken(ticket, fields[ticket])
            key = self._store.keys.workers(identity)
            item, problem = fields_of(taken.payload)
            record = JobRecord(taken.payload, "worker", key, item, problem, on=taken.queue)
            since = taken.fetched_ms / 1000
            work.append(Work(identity, taken.ticket, taken.queue, since, record, alive))
        return work

    def _identities(self) -> list[str]:
        if self._identity is not None:
            return [self._identity]
        names: Any = self._store.client.hkeys(self._store.keys.holders)
        return sorted(text(each) for each in names)[:MOST_WORKERS]
