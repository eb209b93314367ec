"""The three sets of jobs: those that wait for their time, those that wait for another attempt, the dead ones.

from django_cogworker.api import RetrySet

for entry in RetrySet().search(error="TimeoutError").entries:
    print(entry.jid, entry.at, entry.error_message)
RetrySet().retry_all(queue="mail")
"""

from __future__ import annotations

from typing import Any, ClassVar

from django_cogworker.api.acting import Action
from django_cogworker.api.bulk import BulkProgress
from django_cogworker.api.criteria import Criteria
from django_cogworker.api.records import Place, SortedEntry, fields_of
from django_cogworker.api.replies import number
from django_cogworker.api.shelf import Shelf
from django_cogworker.store.store import get_store
from django_cogworker.store.walks import Lying, Walk, walk_of_set


class _JobSet(Shelf[SortedEntry]):
    """A sorted set."""

    place: ClassVar[Place]

    def __init__(self) -> None:
        self.label = self.place
        self._client: Any = get_store().client
        self._key = self._key_of()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def _key_of(self) -> str:
        raise NotImplementedError

    def __len__(self) -> int:
        pipe = self._client.pipeline(transaction=False)
        pipe.zcard(self._key)
        return number(pipe.execute(raise_on_error=False)[0])

    def walk(self, *, backwards: bool) -> Walk:
        return walk_of_set(self._client, self._key, backwards=backwards)

    def record(self, lying: Lying) -> SortedEntry:
        item, problem = fields_of(lying.member)
        return SortedEntry(lying.member, self.place, lying.key, item, problem, score=lying.score)

    def retry_all(self, criteria: Criteria | None = None, **fields: Any) -> BulkProgress:
        """To their queues at once, all that match and were here at the beginning. O(entries)."""
        return self.bulk(Action("retry"), criteria, **fields).run()


class ScheduledSet(_JobSet):
    """Jobs that wait for their time; pages begin with the next one."""

    place = "schedule"

    def _key_of(self) -> str:
        return get_store().keys.schedule


class RetrySet(_JobSet):
    """Jobs that failed and wait for another attempt; pages begin with the next one."""

    place = "retry"

    def _key_of(self) -> str:
        return get_store().keys.retry

    def kill_all(self, criteria: Criteria | None = None, **fields: Any) -> BulkProgress:
        """To the dead set, all that match and were here at the beginning. O(entries)."""
        return self.bulk(Action("kill"), criteria, **fields).run()


class DeadSet(_JobSet):
    """Jobs that failed for good; pages begin with the one that died last."""

    place = "dead"
    newest_first = True

    def _key_of(self) -> str:
        return get_store().keys.dead
