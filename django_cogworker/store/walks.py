"""Going through jobs that wait, page by page: a set, or the three parts of a queue.

A page is one round trip, whatever lies there. A cursor says where the next one begins: in a sorted set a
score and how many entries with it have been seen, in a list the distance from one end. So a page is found at
once, and what is taken away behind it, or comes in there, moves nothing out of sight.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any, Literal

import redis

from django_cogworker.exceptions import InvalidQuery
from django_cogworker.store.keys import Keys

logger = logging.getLogger("django_cogworker")

#: Scores of the priorities above 0 are lower than this one, of those below 0 higher (see `queue.lua`).
ZERO_BAND = 100 * 2**44


@dataclasses.dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the way: a whole list, or the members of a sorted set with scores in a range.

    `backwards`: a set from its highest score, a list from the left, where new jobs come in.
    """

    key: str
    kind: Literal["list", "set"]
    backwards: bool = False
    low: str = "-inf"
    high: str = "+inf"


@dataclasses.dataclass(frozen=True, slots=True)
class Lying:
    """An entry as it lies there. `score`: in a sorted set; `far`: in a list, from its right end (else -1)."""

    stretch: int
    key: str
    member: bytes
    score: float | None = None
    far: int = -1


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """One page. `total`: how many there are in all; `more`: whether some come after these."""

    start: str
    entries: list[Lying]
    total: int
    more: bool

    def cursor(self, upto: int, without: Collection[int] = ()) -> str:
        """Where it goes on after the first `upto` entries, if those at the places `without` are not there any more."""
        if not upto:
            return self.start
        last = self.entries[upto - 1]
        at, position, seen = _read(self.start)
        kept = [
            each
            for place, each in enumerate(self.entries[:upto])
            if place not in without and each.stretch == last.stretch
        ]
        goes_on = at == last.stretch
        if last.score is None:
            return f"{last.stretch}_{(seen if goes_on else 0) + len(kept)}"
        equal = sum(each.score == last.score for each in kept)
        if goes_on and position and float(position) == last.score:
            equal += seen
        return f"{last.stretch}_{equal}_{last.score!r}"


class Walk:
    """The way through some stretches, one after the other."""

    def __init__(self, client: redis.Redis, stretches: Sequence[Stretch]) -> None:
        self._client: Any = client
        self.stretches = stretches

    def read(self, cursor: str, count: int) -> Reading:
        """The next `count` entries: one round trip. Raises `InvalidQuery` for a cursor that is none."""
        pipe = self._client.pipeline(transaction=False)
        asked = self._ask(pipe, cursor, count)
        return self._reading(asked, pipe.execute(raise_on_error=False), cursor, count)

    def _ask(self, pipe: Any, cursor: str, count: int) -> list[int]:
        """Ask for sizes and for what comes next; the stretch of each answer after the sizes."""
        at, position, seen = _read(cursor)
        if at >= len(self.stretches):
            raise InvalidQuery(f"{cursor!r} is no cursor of ours.")
        for key, kind in self._sizes().items():
            (pipe.llen if kind == "list" else pipe.zcard)(key)
        asked: list[int] = []
        for place in range(at, len(self.stretches)):
            begin = (position, seen) if place == at else ("", 0)
            asked += [place] * _ask(pipe, self.stretches[place], *begin, count + 1)
        return asked

    def _sizes(self) -> dict[str, str]:
        """What is asked for its size: keys and kinds."""
        return {each.key: each.kind for each in self.stretches}

    def _reading(self, asked: list[int], answers: Any, cursor: str, count: int) -> Reading:
        at, _, seen = _read(cursor)
        sizes = self._sizes()
        lengths = dict(zip(sizes, map(_usable, answers), strict=False))
        entries: list[Lying] = []
        for place, answer in zip(asked, answers[len(sizes) :], strict=True):
            before = seen if place == at else 0
            entries += self._lying(place, _usable(answer) or [], before, lengths)
        total = sum(each or 0 for each in lengths.values())
        return Reading(cursor, entries[:count], total, len(entries) > count)

    def _lying(
        self, place: int, found: list[Any], seen: int, lengths: dict[str, Any]
    ) -> list[Lying]:
        stretch = self.stretches[place]
        if stretch.kind == "set":
            return [Lying(place, stretch.key, member, float(score)) for member, score in found]
        length = lengths[stretch.key] or 0
        if stretch.backwards:
            return [
                Lying(place, stretch.key, each, far=max(0, length - 1 - seen - number))
                for number, each in enumerate(found)
            ]
        return [
            Lying(place, stretch.key, each, far=seen + number)
            for number, each in enumerate(reversed(found))
        ]


def read_heads(client: redis.Redis, heads: Sequence[tuple[Walk, int]]) -> list[Reading]:
    """The first so many entries of each of these walks: one round trip for all of them."""
    pipe: Any = client.pipeline(transaction=False)
    asked = [walk._ask(pipe, "", count) for walk, count in heads]
    answers = iter(pipe.execute(raise_on_error=False))
    readings = []
    for (walk, count), stretches in zip(heads, asked, strict=True):
        own = list(islice(answers, len(walk._sizes()) + len(stretches)))
        readings.append(walk._reading(stretches, own, "", count))
    return readings


def cursor_at(score: float) -> str:
    """A cursor of a sorted set's walk that begins with this score."""
    return f"0_0_{score!r}"


class Pace:
    """How many entries are read in one go: many of small ones, few where payloads are large."""

    #: Entries at the most, and the bytes from which on it takes fewer.
    MOST, HEAVY = 1_000, 2_000_000

    def __init__(self, count: int = 100) -> None:
        self._count = count

    def read(self, walk: Walk, cursor: str) -> Reading:
        reading = walk.read(cursor, self._count)
        size = sum(len(each.member) for each in reading.entries)
        if size > self.HEAVY:
            self._count = max(5, self._count * self.HEAVY // size)
        elif size < self.HEAVY // 4:
            self._count = min(self.MOST, self._count * 2)
        return reading


def walk_of_set(client: redis.Redis, key: str, *, backwards: bool) -> Walk:
    """Through a sorted set, from its lowest score or from its highest."""
    return Walk(client, [Stretch(key, "set", backwards)])


def walk_of_queue(client: redis.Redis, keys: Keys, name: str, *, backwards: bool) -> Walk:
    """Through a queue in the order in which its jobs are fetched, or in the opposite one."""
    queue = keys.queue(name)
    stretches = [
        Stretch(queue.priority, "set", backwards, "-inf", f"({ZERO_BAND}"),
        Stretch(queue.jobs, "list", backwards),
        Stretch(queue.priority, "set", backwards, str(ZERO_BAND), "+inf"),
    ]
    return Walk(client, stretches[::-1] if backwards else stretches)


def _ask(pipe: Any, stretch: Stretch, position: str, seen: int, count: int) -> int:
    """Ask for what comes next there; the number of commands."""
    if stretch.kind == "list":
        first, last = -seen - count, -seen - 1
        if stretch.backwards:
            first, last = seen, seen + count - 1
        pipe.lrange(stretch.key, first, last)
        return 1
    ask = pipe.zrevrangebyscore if stretch.backwards else pipe.zrangebyscore
    begin, end = stretch.low, stretch.high
    if position:
        # Those of the same score, of which some have been seen; then those beyond it.
        ask(stretch.key, position, position, seen, count, withscores=True)
        begin, end = (begin, f"({position}") if stretch.backwards else (f"({position}", end)
    if stretch.backwards:
        begin, end = end, begin
    ask(stretch.key, begin, end, 0, count, withscores=True)
    return 2 if position else 1


def _usable(answer: Any) -> Any:
    """A key of the wrong type has nothing to show, and hinders no other one."""
    if not isinstance(answer, Exception):
        return answer
    if not isinstance(answer, redis.ResponseError):
        raise answer
    logger.error("Redis holds something unusable where jobs belong: %s.", answer)
    return None


def _read(cursor: str) -> tuple[int, str, int]:
    """Stretch, score (or '') and number of those seen."""
    if not cursor:
        return 0, "", 0
    try:
        stretch, seen, *score = cursor.split("_")
        position = repr(float(score[0])) if score else ""
        if len(score) > 1 or position == "nan" or not 0 <= int(seen) < 2**62 or int(stretch) < 0:
            raise ValueError
        return int(stretch), position, int(seen)
    except (ValueError, AttributeError):
        raise InvalidQuery(f"{cursor!r} is no cursor of ours.") from None
