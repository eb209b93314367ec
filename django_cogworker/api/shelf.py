"""A place where jobs wait, as queues and the three sets have it in common: pages, search, actions.

Nothing here reads without a bound: a page is one round trip, a search has seconds, an action for all that
match goes in steps.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from django_cogworker.api.acting import Action, Verdict, carry_out, moment
from django_cogworker.api.bulk import BulkAction, BulkProgress
from django_cogworker.api.criteria import Criteria, Matcher
from django_cogworker.api.records import JobRecord
from django_cogworker.exceptions import InvalidQuery
from django_cogworker.jobs.when import Moment
from django_cogworker.store.lookup import look_again
from django_cogworker.store.store import get_store
from django_cogworker.store.walks import Lying, Pace, Walk

E = TypeVar("E", bound=JobRecord)

MAX_LIMIT = 1_000
MAX_HANDLES = 1_000
#: Entries that an iteration reads at a time.
PAGE = 100
#: Seconds that a search goes on by default.
BUDGET = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class JobPage(Generic[E]):
    """Some entries; `cursor` is where the next page begins, `None` at the end; `total`: how many there are in all."""

    entries: list[E]
    cursor: str | None
    total: int


@dataclasses.dataclass(frozen=True, slots=True)
class JobMatches(Generic[E]):
    """What a search found.

    `looked_at` entries in this call; `finished`: the end was reached. Where it was not, because the time was over or
    enough were found, `cursor` is where to go on.
    """

    entries: list[E]
    cursor: str | None
    looked_at: int
    finished: bool


class Shelf(Generic[E]):
    """Base of `Queue` and the sets."""

    #: `schedule`, `retry`, `dead` or `queue:<name>`.
    label: str
    #: The queue that this is, or ''.
    on: str = ""
    #: Whether pages begin at the end where the highest score, or the newest job, is.
    newest_first: ClassVar[bool] = False

    def walk(self, *, backwards: bool) -> Walk:
        """The way through it."""
        raise NotImplementedError

    def record(self, lying: Lying) -> E:
        """An entry, read."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[E]:
        """All, in the order of pages; read a hundred at a time while you iterate."""
        cursor: str | None = ""
        while cursor is not None:
            page = self.page(cursor, PAGE)
            yield from page.entries
            cursor = page.cursor

    def page(
        self, cursor: str | None = None, limit: int = 25, *, backwards: bool = False
    ) -> JobPage[E]:
        """At most `limit` entries from the cursor on; `backwards`: in the opposite order, from the other end.

        One round trip.
        Raises `InvalidQuery` for a cursor that is none or a limit that is not from 1 to 1000.
        """
        check_limit(limit)
        walk = self.walk(backwards=backwards != self.newest_first)
        reading = walk.read(cursor or "", limit)
        return JobPage(
            list(map(self.record, reading.entries)),
            reading.cursor(len(reading.entries)) if reading.more else None,
            reading.total,
        )

    def search(
        self,
        criteria: Criteria | None = None,
        *,
        cursor: str | None = None,
        limit: int = 25,
        budget: float = BUDGET,
        **fields: Any,
    ) -> JobMatches[E]:
        """Entries that match, in the order of pages: at most `limit`, looked for at most for about `budget` seconds.

        O(entries), some hundred thousand a second. Give `Criteria`, or its fields by name. Raises `InvalidQuery`.
        """
        check_limit(limit)
        matcher = Matcher(Criteria.of(criteria, fields), self.on)
        deadline = time.monotonic() + budget
        walk, pace = self.walk(backwards=self.newest_first), Pace()
        found: list[E] = []
        looked_at, position = 0, cursor or ""
        while True:
            reading = pace.read(walk, position)
            for at, lying in enumerate(reading.entries, 1):
                if not matcher.may_match(lying.member):
                    continue
                record = self.record(lying)
                if not matcher.matches(record):
                    continue
                found.append(record)
                if len(found) == limit:
                    more = reading.more or at < len(reading.entries)
                    goes_on = reading.cursor(at) if more else None
                    return JobMatches(found, goes_on, looked_at + at, not more)
            looked_at += len(reading.entries)
            if not reading.more:
                return JobMatches(found, None, looked_at, True)
            position = reading.cursor(len(reading.entries))
            if time.monotonic() >= deadline:
                return JobMatches(found, position, looked_at, False)

    def find(self, jid: str, *, budget: float = 2.0) -> E | None:
        """The entry with exactly that jid, or what stands for it; `None` where it is not found here, or not in time.

        O(entries). By its `handle` an entry is found at once: see `get`.
        """
        given: Any = jid
        if not isinstance(given, str) or not jid:
            raise InvalidQuery(f"find() takes the jid of a job, not {jid!r}.")
        deadline = time.monotonic() + budget
        cursor: str | None = None
        while True:
            left = max(0.0, deadline - time.monotonic())
            matches = self.search(Criteria(jid=jid), cursor=cursor, limit=1, budget=left)
            for each in matches.entries:
                if each.jid == jid:
                    return each
            cursor = matches.cursor
            if cursor is None or not left:
                return None

    def get(self, handles: Sequence[str]) -> list[E | None]:
        """The entries with these handles, `None` for those that are gone. One round trip; a thousand at the most.

        Of a list's entry it looks in the neighbourhood where it was seen: gone is also what two thousand fetched jobs
        have moved. Of a set's among the first five thousand of the same score.
        """
        if len(handles) > MAX_HANDLES:
            raise InvalidQuery(f"{len(handles)} handles are more than {MAX_HANDLES}.")
        split = [_read_handle(each) for each in handles]
        digests = {digest for _, _, digest in split}
        found = look_again(
            get_store().client,
            self.walk(backwards=False).stretches,
            {score for score, _, _ in split if score is not None},
            {far for score, far, _ in split if score is None},
            lambda member: _digest(member) in digests,
        )
        by_digest = {(each.score, _digest(each.member)): each for each in found}
        entries = [by_digest.get((score, digest)) for score, _, digest in split]
        return [None if each is None else self.record(each) for each in entries]

    # Actions on entries.

    def act(self, entries: E | Iterable[E], action: Action) -> list[Verdict]:
        """Do it with these; one verdict each, in their order."""
        return carry_out([entries] if isinstance(entries, JobRecord) else entries, action)

    def retry(self, entries: E | Iterable[E]) -> list[Verdict]:
        """To their queues at once. A dead job keeps its `retry_count`: it gets one more attempt."""
        return self.act(entries, Action("retry"))

    run_now = retry

    def delete(self, entries: E | Iterable[E]) -> list[Verdict]:
        """Away, with the record of their attempts and all that features keep for them."""
        return self.act(entries, Action("delete"))

    def reschedule(self, entries: E | Iterable[E], at: Moment) -> list[Verdict]:
        """Due at `at`, an aware `datetime` or epoch seconds. For those that wait for their time."""
        return self.act(entries, Action("reschedule", at=moment(at)))

    def move(self, entries: E | Iterable[E], queue: str) -> list[Verdict]:
        """To another queue; those in a set wait on there, and go to that queue in their time."""
        return self.act(entries, Action("move", queue=queue))

    def kill(self, entries: E | Iterable[E]) -> list[Verdict]:
        """To the dead set. No death handler hears of it."""
        return self.act(entries, Action("kill"))

    # Actions on all that match.

    def bulk(self, action: Action, criteria: Criteria | None = None, **fields: Any) -> BulkAction:
        """The action for all that match, to be driven in steps."""
        return BulkAction(self, action, Criteria.of(criteria, fields))

    def delete_all(self, criteria: Criteria | None = None, **fields: Any) -> BulkProgress:
        """Delete all that match (all, where nothing is asked for) and were here at the beginning. O(entries)."""
        return self.bulk(Action("delete"), criteria, **fields).run()


def check_limit(limit: Any) -> None:
    """Raises `InvalidQuery` for what is no number of entries."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidQuery(f"limit is {limit!r}; it takes a whole number from 1 to {MAX_LIMIT}.")


def _digest(member: bytes) -> str:
    return hashlib.sha1(member, usedforsecurity=False).hexdigest()[:16]


def _read_handle(handle: str) -> tuple[float | None, int, str]:
    """Score or distance, and digest."""
    try:
        where, _, digest = handle.partition("~")
        if not digest:
            raise ValueError
        if where.lstrip("-").isdigit():
            return None, max(0, int(where)), digest
        return float(where), 0, digest
    except (ValueError, AttributeError):
        raise InvalidQuery(f"{handle!r} is no handle of ours.") from None
