"""What workers hold: the jobs that run, and the few that were fetched ahead and come next.

Two round trips, whatever lies there: the names of the workers, and of each the jobs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from django_cogworker.api.records import JobRecord, fields_of
from django_cogworker.exceptions import InvalidQuery
from django_cogworker.store.scripted import read_taken, text
from django_cogworker.store.store import get_store

#: Workers that are asked, and jobs read of each, at the most.
MOST_WORKERS = 1_000
MOST_OF_WORKER = 500


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
        return len(self.read())

    def read(self, limit: int = 1_000) -> list[Work]:
        """At most so many. O(workers + jobs in progress)."""
        given: Any = limit
        if isinstance(given, bool) or not isinstance(given, int) or limit < 1:
            raise InvalidQuery(f"limit is {limit!r}; it takes a whole number above 0.")
        keys = self._store.keys
        identities = self._identities()
        pipe: Any = self._store.client.pipeline(transaction=False)
        for each in identities:
            pipe.hscan(keys.workers(each), 0, count=min(limit, MOST_OF_WORKER))
            pipe.exists(keys.process(each))
        answers = pipe.execute(raise_on_error=False)
        found: list[Work] = []
        for place, each in enumerate(identities):
            held, alive = answers[2 * place : 2 * place + 2]
            if not isinstance(held, Exception):
                found += self._of(each, held[1], bool(alive) and not isinstance(alive, Exception))
        return found[:limit]

    def _of(self, identity: str, fields: dict[bytes, bytes], alive: bool) -> list[Work]:
        work = []
        tickets = sorted((each for each in fields if each.isdigit()), key=int)
        for ticket in tickets[:MOST_OF_WORKER]:
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
