"""The way through the runs that are kept, newest first or oldest first, both kinds merged.

Successes and failures lie in two sets by the time of their end. Each is read in chunks, and the next one of a kind only
when the last is used up, so that the rarer kind, whose records are large, is not read again and again. A place is the
moment of the last run that was passed, with the number of runs of each kind that ended in that very moment: runs that
end meanwhile are newer, so they move nothing out of sight.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from django_cogworker.exceptions import InvalidQuery
from django_cogworker.features.history import names
from django_cogworker.features.history.writing import FAILED, SUCCESS, Status
from django_cogworker.store.store import get_store

#: Seconds that a look goes on by default, and round trips at the most.
BUDGET = 0.2
ROUND_TRIPS = 100
#: Chunks grow to so many runs, as long as they have fewer bytes than this.
LARGEST, HEAVY = 4_000, 1_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """Times of ends, both included."""

    since: float = -math.inf
    until: float = math.inf


ALWAYS = Span()


@dataclasses.dataclass(slots=True)
class Place:
    """Where a search is: the moment, and how many of each kind that ended in it were looked at."""

    moment: float
    seen: dict[Status, int]

    def passed(self, kind: Status, moment: float) -> None:
        if moment != self.moment:
            self.moment, self.seen = moment, dict.fromkeys(self.seen, 0)
        self.seen[kind] += 1

    def __str__(self) -> str:
        return f"{self.moment!r}~{self.seen[SUCCESS]}~{self.seen[FAILED]}"

    @classmethod
    def after(cls, cursor: str | None, span: Span, oldest_first: bool) -> Place:
        """Raises `InvalidQuery`."""
        begin = cls(span.since if oldest_first else span.until, {SUCCESS: 0, FAILED: 0})
        if not cursor:
            return begin
        try:
            moment, success, failed = cursor.split("~")
            place = cls(float(moment), {SUCCESS: int(success), FAILED: int(failed)})
        except ValueError:
            place = cls(math.nan, {})
        if math.isnan(place.moment) or min(place.seen.values()) < 0:
            raise InvalidQuery(f"cursor is {cursor!r}; it takes one that a search gave.")
        return place if span.since <= place.moment <= span.until else begin


@dataclasses.dataclass(slots=True)
class _Stream:
    """The runs of one kind that come next, and from where on more are read."""

    kind: Status
    key: str
    moment: float
    seen: int
    chunk: int
    ended: bool = False
    read: deque[tuple[bytes, float]] = dataclasses.field(default_factory=deque)

    def take(self, page: Sequence[tuple[bytes, float]]) -> None:
        self.ended = len(page) < self.chunk
        self.read.extend(page)
        if self.ended:
            return
        last = page[-1][1]
        equal = sum(score == last for _, score in page)
        self.seen = equal + (self.seen if last == self.moment else 0)
        self.moment = last
        if sum(len(member) for member, _ in page) < HEAVY:
            self.chunk = max(self.chunk, min(LARGEST, 2 * self.chunk))


class Walk:
    """Iterate: kind, record and end of each run. `total`: how many runs there are in the span; `ended`: whether all
    of them came. Where the time is over, which is looked at before more is read, the iteration just ends.
    """

    def __init__(
        self,
        kinds: Sequence[Status],
        span: Span,
        place: Place,
        chunk: int,
        deadline: float,
        *,
        oldest_first: bool = False,
    ) -> None:
        store = get_store()
        self._client: Any = store.client
        self._span, self._upwards, self._deadline = span, oldest_first, deadline
        self._streams = [
            _Stream(each, names.runs(store.keys, each), place.moment, place.seen[each], chunk)
            for each in kinds
        ]
        self.total = 0
        self.ended = False

    def __iter__(self) -> Iterator[tuple[Status, bytes, float]]:
        sign = 1 if self._upwards else -1
        for trip in range(ROUND_TRIPS):
            if trip and time.monotonic() > self._deadline:
                return
            self._read(first=not trip)
            while all(each.read or each.ended for each in self._streams):
                # Where two ended at the same moment the success, which stands first, comes first.
                waiting = [each for each in self._streams if each.read]
                if not waiting:
                    self.ended = True
                    return
                stream = min(waiting, key=lambda each: sign * each.read[0][1])
                yield stream.kind, *stream.read.popleft()

    def _read(self, *, first: bool) -> None:
        pipe = self._client.pipeline(transaction=False)
        asked = [each for each in self._streams if not each.read and not each.ended]
        for each in asked:
            if self._upwards:
                bounds, ask = (each.moment, self._span.until), pipe.zrangebyscore
            else:
                bounds, ask = (each.moment, self._span.since), pipe.zrevrangebyscore
            ask(each.key, *map(_bound, bounds), each.seen, each.chunk, withscores=True)
        if first:
            for each in self._streams:
                if self._span == ALWAYS:
                    pipe.zcard(each.key)
                else:
                    pipe.zcount(each.key, _bound(self._span.since), _bound(self._span.until))
        answers = pipe.execute()
        for each, page in zip(asked, answers, strict=False):
            each.take(page)
        if first:
            self.total = sum(answers[len(asked) :])


def _bound(moment: float) -> str:
    return repr(moment) if math.isfinite(moment) else f"{'+' if moment > 0 else '-'}inf"
