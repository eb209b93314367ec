"""Runs in another order than that of their ends.

Redis keeps them by their end alone. So they are looked through from the newest on, for a limited time, and the first
ones of the order that is wanted are kept. Who asks for a span of time that can be looked through gets the order of all
in it; else what is older does not take part, and the answer says so.
"""

from __future__ import annotations

import dataclasses
import heapq
import re
import time
from typing import Any, Literal, NamedTuple, get_args

from django_cogworker.exceptions import InvalidQuery
from django_cogworker.features.history.records import HistoryEntry, read
from django_cogworker.features.history.searching import CHUNK, Wanted, matching
from django_cogworker.features.history.walking import Place, Walk
from django_cogworker.features.history.writing import Status

Order = Literal["seconds", "wait", "attempt", "job_class", "queue", "error_class"]
_NUMBERS = ("seconds", "wait", "attempt")
#: So many are put in order.
MOST = 1_000
#: How a record begins that was written here: its numbers are read without decoding all of it.
_HEAD = re.compile(
    rb'\{"jid":"[^"\\]*","class":"(?P<job_class>[^"\\]*)","queue":"(?P<queue>[^"\\]*)",'
    rb'"attempt":(?P<attempt>\d+),(?:"seconds":(?P<seconds>[\d.]+),)?(?:"wait":(?P<wait>[\d.]+),)?'
)


@dataclasses.dataclass(frozen=True, slots=True)
class HistoryRanking:
    """Runs in order: a part of `ranked`, the first of the `matched` that match among the `looked_at` newest.

    `whole`: all that match are among them; where not, older runs than `back_to` (epoch seconds) are not. `total`: so
    many are kept of the status and the time that were asked for.
    """

    entries: list[HistoryEntry]
    whole: bool
    looked_at: int
    total: int
    matched: int = 0
    ranked: int = 0
    back_to: float | None = None


class _Found(NamedTuple):
    """One that matches, by its place in the order: what has no such value comes last, of equals the newest first."""

    unknown: bool
    value: Any
    number: int
    kind: Status
    member: bytes
    moment: float


def check_order(by: Any) -> None:
    if by not in get_args(Order):
        raise InvalidQuery(f"by is {by!r}; it takes {', '.join(map(repr, get_args(Order)))}.")


def rank(
    wanted: Wanted, by: Order, descending: bool, offset: int, limit: int, budget: float
) -> HistoryRanking:
    """The runs that match in order; see `History.ranked`."""
    place = Place.after(None, wanted.span, False)
    walk = Walk(wanted.kinds, wanted.span, place, CHUNK, time.monotonic() + budget)
    best: list[_Found] = []
    looked_at = matched = 0
    moment: float | None = None
    for kind, member, moment in matching(walk, wanted):
        looked_at += 1
        known, value = (False, None) if member is None else _look(wanted, by, kind, member, moment)
        if member is None or not known:
            continue
        matched += 1
        best.append(_found(value, by, descending, looked_at, kind, member, moment))
        if len(best) >= 4 * MOST:
            best = heapq.nsmallest(MOST, best, key=_place)
    best = heapq.nsmallest(MOST, best, key=_place)
    shown = (read(each.kind, each.member, each.moment) for each in best[offset : offset + limit])
    entries = [each for each in shown if each is not None]
    back_to = None if walk.ended else moment
    return HistoryRanking(entries, walk.ended, looked_at, walk.total, matched, len(best), back_to)


def _place(found: _Found) -> tuple[bool, Any, int]:
    return found[:3]


def _found(
    value: Any, by: Order, descending: bool, number: int, kind: Status, member: bytes, moment: float
) -> _Found:
    unknown = value is None
    if unknown:
        value = 0
    elif by in _NUMBERS:
        value = -value if descending else value
    else:
        value = _Backwards(value.casefold()) if descending else value.casefold()
    return _Found(unknown, value, number, kind, member, moment)


class _Backwards:
    """A text that comes before those that it follows."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Backwards) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __lt__(self, other: _Backwards) -> bool:
        return other._text < self._text


def _look(
    wanted: Wanted, by: Order, kind: Status, member: bytes, moment: float
) -> tuple[bool, Any]:
    """Whether it matches, and its value in this order."""
    head = None if wanted.is_narrow or by == "error_class" else _HEAD.match(member)
    if head is not None and (value := head[by]):
        return True, float(value) if by in _NUMBERS else value.decode()
    run = read(kind, member, moment, unpack=False)
    if run is None or not wanted.fits(run):
        return False, None
    value = getattr(run, by)
    if by in _NUMBERS:
        return True, value if isinstance(value, (int, float)) else None
    return True, value if isinstance(value, str) and value else None
