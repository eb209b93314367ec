"""Looking through the runs that are kept, for a limited time, with a cursor to go on.

Successes and failures lie in two sets by the time of their end. Both are read in chunks from the same
moment on, and merged as far as both are known. A cursor is the moment of the last run that was looked at,
with the number of runs of each kind that ended in that very moment: runs that end meanwhile are newer, so
they move nothing out of sight.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import time
from collections.abc import Iterator
from typing import Any

from django_cogworker.exceptions import InvalidQuery
from django_cogworker.features.history import names
from django_cogworker.features.history.records import HistoryEntry, read
from django_cogworker.features.history.writing import FAILED, SUCCESS, Status
from django_cogworker.store.store import get_store

#: Seconds that a search goes on by default, runs of each kind read at a time, and round trips at the most.
BUDGET = 0.2
CHUNK = 500
ROUND_TRIPS = 50
#: A text that JSON writes as it is.
_PLAIN = re.compile(r"[A-Za-z0-9_.@+-]+")


@dataclasses.dataclass(frozen=True, slots=True)
class HistorySlice:
    """Some runs that match. `cursor` goes on after them, `None` where nothing is left. `looked_at`: so many runs
    were looked at for this; `total`: so many are kept of the status that was asked for.
    """

    entries: list[HistoryEntry]
    cursor: str | None
    looked_at: int
    total: int


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """What a run has to be like. An empty text asks for nothing."""

    status: Status | None = None
    job_class: str = ""
    jid: str = ""
    text: str = ""

    @property
    def kinds(self) -> tuple[Status, ...]:
        return (SUCCESS, FAILED) if self.status is None else (self.status,)

    @property
    def is_narrow(self) -> bool:
        return bool(self.job_class or self.jid or self.text)

    def marks(self) -> Iterator[bytes]:
        """What the bytes of a record that matches contain: most are put aside without being decoded."""
        if self.job_class:
            yield f'"class":{json.dumps(self.job_class)}'.lower().encode()
        if self.jid:
            yield json.dumps(self.jid).lower().encode()
        if _PLAIN.fullmatch(self.text):
            yield self.text.lower().encode()

    def fits(self, run: HistoryEntry) -> bool:
        if self.job_class not in ("", run.job_class) or self.jid not in ("", run.jid):
            return False
        return not self.text or self.text.casefold() in _words(run).casefold()


@dataclasses.dataclass(slots=True)
class _Place:
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
    def after(cls, cursor: str | None, oldest_first: bool) -> _Place:
        if not cursor:
            return cls(-math.inf if oldest_first else math.inf, {SUCCESS: 0, FAILED: 0})
        try:
            moment, success, failed = cursor.split("~")
            place = cls(float(moment), {SUCCESS: int(success), FAILED: int(failed)})
        except ValueError:
            place = cls(math.nan, {})
        if math.isnan(place.moment) or min(place.seen.values()) < 0:
            raise InvalidQuery(f"cursor is {cursor!r}; it takes one that a search gave.")
        return place


def search(
    wanted: Wanted, oldest_first: bool, cursor: str | None, limit: int, budget: float
) -> HistorySlice:
    """One search; see `History.search`."""
    deadline = time.monotonic() + budget
    place = _Place.after(cursor, oldest_first)
    marks = tuple(wanted.marks())
    found: list[HistoryEntry] = []
    looked_at = total = 0
    for _ in range(ROUND_TRIPS):
        # One more than fits on the page tells whether anything is left.
        many = CHUNK if wanted.is_narrow else limit + 1
        total, runs, more = _chunk(wanted, oldest_first, place, many)
        for kind, member, moment in runs:
            if len(found) == limit:
                return HistorySlice(found, str(place), looked_at, total)
            looked_at += 1
            place.passed(kind, moment)
            if marks and not _has_all(member.lower(), marks):
                continue
            run = read(kind, member, moment)
            if run is not None and wanted.fits(run):
                found.append(run)
        if not more:
            return HistorySlice(found, None, looked_at, total)
        if time.monotonic() > deadline:
            break
    return HistorySlice(found, str(place), looked_at, total)


def _chunk(
    wanted: Wanted, oldest_first: bool, place: _Place, many: int
) -> tuple[int, list[tuple[Status, bytes, float]], bool]:
    """How many runs there are of these kinds; those that follow, in order; whether there may be more."""
    store = get_store()
    pipe: Any = store.client.pipeline(transaction=False)
    for kind in wanted.kinds:
        key, skip = names.runs(store.keys, kind), place.seen[kind]
        pipe.zcard(key)
        if oldest_first:
            pipe.zrangebyscore(key, place.moment, "+inf", skip, many, withscores=True)
        else:
            pipe.zrevrangebyscore(key, place.moment, "-inf", skip, many, withscores=True)
    replies = pipe.execute()
    sign = 1 if oldest_first else -1
    runs: list[tuple[Status, bytes, float]] = []
    known_to = (
        math.inf
    )  # in the order of the search; beyond it a kind may have runs that were not read
    for at, kind in enumerate(wanted.kinds):
        page = replies[2 * at + 1]
        runs += [(kind, member, moment) for member, moment in page]
        if len(page) == many:
            known_to = min(known_to, sign * page[-1][1])
    known = [each for each in runs if sign * each[2] <= known_to]
    # Where two ended at the same moment the success comes first.
    known.sort(key=lambda each: (sign * each[2], each[0] == FAILED))
    return sum(replies[::2]), known, known_to < math.inf


def _has_all(member: bytes, marks: tuple[bytes, ...]) -> bool:
    return all(mark in member for mark in marks)


def _words(run: HistoryEntry) -> str:
    args = run.args_cut or json.dumps([run.args, run.kwargs or {}], ensure_ascii=False)
    parts = (run.job_class, run.queue, run.jid, args, run.error_class, run.error_message)
    return "\n".join(each for each in parts if each)
