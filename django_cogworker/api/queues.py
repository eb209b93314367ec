"""Queues: how long they are, how late, paused or not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import redis

from django_cogworker.api.queue_states import age_of
from django_cogworker.api.records import JobRecord, fields_of
from django_cogworker.api.replies import number
from django_cogworker.api.shelf import Shelf
from django_cogworker.exceptions import InvalidQueueName, UnparseablePayload
from django_cogworker.features.asking import Effects
from django_cogworker.parsers import check_queue_name
from django_cogworker.payload.codec import decode
from django_cogworker.store.scripted import text
from django_cogworker.store.store import get_store
from django_cogworker.store.values import Effect
from django_cogworker.store.walks import Lying, Walk, walk_of_queue

#: So many jobs are deleted in one step.
BATCH = 500


class Queue(Shelf[JobRecord]):
    """One queue by name. It need not exist: then it is empty.

    Its jobs come in the order in which they are fetched: those with a priority above 0, the others from the oldest on,
    those with one below 0. With jobs fetched meanwhile the next page may leave out as many; backwards, from the
    job that came last, none is left out. Search goes the first way, an action for all that match the second.
    """

    def __init__(self, name: str = "default") -> None:
        try:
            self.name = check_queue_name(name)
        except ValueError as error:
            raise InvalidQueueName(f"{name!r} is no queue: {error}.") from None
        self.on = self.name
        self.label = f"queue:{self.name}"
        self._store = get_store()
        self._keys = self._store.keys.queue(self.name)

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"

    def walk(self, *, backwards: bool) -> Walk:
        return walk_of_queue(self._store.client, self._store.keys, self.name, backwards=backwards)

    def record(self, lying: Lying) -> JobRecord:
        item, problem = fields_of(lying.member)
        return JobRecord(
            lying.member, "queue", lying.key, item, problem, self.name, lying.far, lying.score
        )

    @property
    def size(self) -> int:
        """How many jobs wait here, those with a priority included."""
        pipe = self._store.client.pipeline(transaction=False)
        pipe.llen(self._keys.jobs)
        pipe.zcard(self._keys.priority)
        return sum(map(number, pipe.execute(raise_on_error=False)))

    @property
    def latency(self) -> float:
        """Seconds that the oldest job of the list has waited; 0 for an empty queue.

        An entry that is no job counts as just arrived.
        """
        try:
            oldest: Any = self._store.client.lindex(self._keys.jobs, -1)
        except redis.ResponseError:
            return 0.0  # not a list; `size` tells so
        return age_of(oldest, time.time())

    @property
    def paused(self) -> bool:
        return bool(self._store.client.sismember(self._store.keys.paused, self.name))

    def pause(self) -> bool:
        """Let no worker fetch from this queue; false where it was paused already."""
        return self._store.pause(self.name)

    def resume(self) -> bool:
        """Let workers fetch again; false where it was not paused."""
        return self._store.resume(self.name)

    def clear(self) -> int:
        """Delete every waiting job; how many there were. Not to be undone.

        O(size): what features keep for a job is freed in the step that deletes it. Jobs that are pushed
        meanwhile may be deleted too.
        """
        removed = Effects("removed")
        if not removed:
            return self._clear_at_once()
        count, spoilt = 0, False
        for key, read in (
            (self._keys.jobs, self._store.client.lrange),
            (self._keys.priority, self._store.client.zrange),
        ):
            try:
                count += self._clear_in_batches(key, read, removed)
            except redis.ResponseError:
                spoilt = True
        # What is of the wrong type goes whole.
        return count + self._clear_at_once() if spoilt else count

    def _clear_in_batches(self, key: str, read: Callable[..., Any], removed: Effects) -> int:
        count = 0
        while batch := read(key, 0, BATCH - 1):
            verdicts = self._store.remove(key, [(each, _parts(each, removed)) for each in batch])
            problem = next((each for each in verdicts if isinstance(each, str)), None)
            if problem is not None:
                raise redis.ResponseError(problem)
            count += sum(map(number, verdicts))
        return count

    def _clear_at_once(self) -> int:
        pipe = self._store.client.pipeline(transaction=True)
        pipe.llen(self._keys.jobs)
        pipe.zcard(self._keys.priority)
        pipe.unlink(self._keys.jobs, self._keys.priority, self._keys.tokens)
        waiting, prioritised, deleted = pipe.execute(raise_on_error=False)
        if isinstance(deleted, Exception):
            raise deleted
        return number(waiting) + number(prioritised)


def _parts(member: bytes, removed: Effects) -> tuple[Effect, ...]:
    try:
        return removed.of(decode(member))
    except UnparseablePayload:
        return ()


def all_queues() -> list[Queue]:
    """Every queue that ever held a job or was read by a worker, by name."""
    store = get_store()
    names: Any = store.client.smembers(store.keys.queues)
    return [Queue(each) for each in sorted(text(name) for name in names)]
