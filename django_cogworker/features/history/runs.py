"""Reading the history: pages of runs, and the counters of days."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from typing import Any, Literal

from django_cogworker.exceptions import ArgumentError, InvalidQuery
from django_cogworker.features.history import names
from django_cogworker.features.history.ranking import HistoryRanking, Order, check_order, rank
from django_cogworker.features.history.records import HistoryEntry, read
from django_cogworker.features.history.searching import HistorySlice, Wanted, search
from django_cogworker.features.history.walking import BUDGET, Span
from django_cogworker.features.history.writing import FAILED, SUCCESS, Status
from django_cogworker.jobs.when import Moment, due_at
from django_cogworker.store.store import get_store

MAX_LIMIT = 1_000
#: Runs read at a time where those of one class are looked for.
CHUNK = 1_000


@dataclasses.dataclass(frozen=True, slots=True)
class HistoryPage:
    """Some runs, the newest first, and how many there are in all."""

    entries: list[HistoryEntry]
    total: int


@dataclasses.dataclass(frozen=True, slots=True)
class DayCount:
    """How many attempts ended on one day in UTC (`YYYY-MM-DD`)."""

    date: str
    success: int
    failed: int


class History:
    """The runs that are kept; `COGWORKER_HISTORY` says how many."""

    def __init__(self) -> None:
        self._store = get_store()
        self._client: Any = self._store.client
        self._keys = {each: names.runs(self._store.keys, each) for each in (SUCCESS, FAILED)}

    def page(
        self,
        *,
        status: Status | None = None,
        job_class: Any = None,
        offset: int = 0,
        limit: int = 25,
    ) -> HistoryPage:
        """Runs from the `offset`-th on, the newest first. `status`: `success`, `failed`, or both. O(page).

        With `job_class` (a job class or its name) it is O(all runs kept), since each is looked at.
        Raises `InvalidQuery`.
        """
        _check(status, offset, limit)
        if job_class is not None:
            return self._page_of_class(status, job_class, offset, limit)
        if status is not None:
            pipe = self._client.pipeline(transaction=False)
            self._ask(pipe, status, offset, limit)
            pipe.zcard(self._keys[status])
            found, total = pipe.execute()
            return HistoryPage(_entries(status, found), total)
        total, begins = self._split(offset)
        pipe = self._client.pipeline(transaction=False)
        for each, begin in begins.items():
            self._ask(pipe, each, begin, limit)
        return HistoryPage(_merged(dict(zip(begins, pipe.execute(), strict=True)))[:limit], total)

    def search(
        self,
        *,
        status: Status | None = None,
        job_class: Any = None,
        queue: str = "",
        jid: str = "",
        text: str = "",
        since: Moment | None = None,
        until: Moment | None = None,
        oldest_first: bool = False,
        cursor: str | None = None,
        limit: int = 25,
        budget: float = BUDGET,
    ) -> HistorySlice:
        """At most `limit` runs that match, the newest first or the oldest, from `cursor` on.

        `text` is looked for, whatever its case, in class, queue, jid, arguments and error. `since` and `until` (aware
        `datetime`s or epoch seconds): when they ended. Where something else than the status and the time is asked
        for, runs are looked through for about `budget` seconds: a `cursor` in the answer then goes on where this look
        ended. Without that it is one round trip, O(limit). Raises `InvalidQuery`.
        """
        _check(status, 0, limit)
        wanted = _wanted(status, job_class, queue, jid, text, since, until)
        return search(wanted, oldest_first, cursor, limit, budget)

    def ranked(
        self,
        by: Order,
        *,
        descending: bool = True,
        status: Status | None = None,
        job_class: Any = None,
        queue: str = "",
        jid: str = "",
        text: str = "",
        since: Moment | None = None,
        until: Moment | None = None,
        offset: int = 0,
        limit: int = MAX_LIMIT,
        budget: float = BUDGET,
    ) -> HistoryRanking:
        """Runs by `seconds`, `wait`, `attempt`, `job_class`, `queue` or `error_class`: the first thousand of those that
        match, among as many of the newest as can be looked through in about `budget` seconds. Raises `InvalidQuery`.
        """
        check_order(by)
        _check(status, offset, limit)
        wanted = _wanted(status, job_class, queue, jid, text, since, until)
        return rank(wanted, by, descending, offset, limit, budget)

    def sizes(self) -> dict[Status | Literal["all"], int]:
        """How many runs are kept: `all`, `success`, `failed`."""
        pipe = self._client.pipeline(transaction=False)
        for each in self._keys.values():
            pipe.zcard(each)
        success, failed = pipe.execute()
        return {"all": success + failed, SUCCESS: success, FAILED: failed}

    def daily(self, days: int = 30) -> list[DayCount]:
        """The last `days` days in UTC, today included, the oldest first. Independent of the runs kept. O(days)."""
        _check_whole("days", days, 1, 3_660)
        today = int(time.time() // names.DAY)
        wanted = range(today - days + 1, today + 1)
        pipe = self._client.pipeline(transaction=False)
        for day in wanted:
            pipe.hmget(names.daily(self._store.keys, day), SUCCESS, FAILED)
        return [
            DayCount(names.date_of(day), int(success or 0), int(failed or 0))
            for day, (success, failed) in zip(wanted, pipe.execute(), strict=True)
        ]

    def clear(self) -> int:
        """Forget all runs; how many there were. The counters of days and the times stay."""
        total = self.sizes()["all"]
        self._client.unlink(*self._keys.values())
        return total

    def _ask(self, pipe: Any, status: str, begin: int, limit: int) -> None:
        pipe.zrevrange(self._keys[status], begin, begin + limit - 1, withscores=True)

    def _split(self, offset: int) -> tuple[int, dict[Status, int]]:
        """How many runs there are, and how many of each kind are among the `offset` newest."""
        sizes = self.sizes()
        low, high = max(0, offset - sizes[FAILED]), min(offset, sizes[SUCCESS])
        while low < high:
            middle = (low + high) // 2
            pipe = self._client.pipeline(transaction=False)
            self._ask(pipe, SUCCESS, middle, 1)
            self._ask(pipe, FAILED, offset - middle - 1, 1)
            success, failed = pipe.execute()
            if success and failed and success[0][1] >= failed[0][1]:
                low = middle + 1
            else:
                high = middle
        return sizes["all"], {SUCCESS: low, FAILED: max(0, offset - low)}

    def _page_of_class(
        self, status: Status | None, job_class: Any, offset: int, limit: int
    ) -> HistoryPage:
        name = str(getattr(job_class, "job_name", job_class))
        mark = f'"class":{json.dumps(name)},"queue":'.encode()
        kinds: tuple[Status, ...] = (SUCCESS, FAILED) if status is None else (status,)
        found: dict[Status, dict[bytes, float]] = {each: {} for each in kinds}
        for each in kinds:
            for begin in range(0, self._client.zcard(self._keys[each]), CHUNK):
                pipe = self._client.pipeline(transaction=False)
                self._ask(pipe, each, begin, CHUNK)
                # One may come twice, where others ended meanwhile.
                found[each].update(pair for pair in pipe.execute()[0] if mark in pair[0])
        # The mark may also stand in the arguments of another class's run.
        entries = [
            each
            for each in _merged({kind: list(pairs.items()) for kind, pairs in found.items()})
            if each.job_class == name
        ]
        return HistoryPage(entries[offset : offset + limit], len(entries))


def _wanted(
    status: Status | None,
    job_class: Any,
    queue: str,
    jid: str,
    text: str,
    since: Moment | None,
    until: Moment | None,
) -> Wanted:
    name = str(getattr(job_class, "job_name", job_class or ""))
    begin, end = _moment("since", since, -math.inf), _moment("until", until, math.inf)
    return Wanted(status, name, queue, jid, text, Span(begin, end))


def _moment(name: str, value: Moment | None, otherwise: float) -> float:
    try:
        return otherwise if value is None else due_at(value)
    except ArgumentError:
        raise InvalidQuery(
            f"{name} is {value!r}; it takes an aware datetime or epoch seconds."
        ) from None


def _check(status: Any, offset: Any, limit: Any) -> None:
    if status not in (None, SUCCESS, FAILED):
        raise InvalidQuery(f"status is {status!r}; it takes 'success', 'failed' or None.")
    _check_whole("offset", offset, 0, 10**9)
    _check_whole("limit", limit, 1, MAX_LIMIT)


def _check_whole(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidQuery(f"{name} is {value!r}; it takes a whole number from {least} to {most}.")


def _merged(found: dict[Status, list[tuple[bytes, float]]]) -> list[HistoryEntry]:
    entries = [each for status, pairs in found.items() for each in _entries(status, pairs)]
    # Where two ended at the same moment the success comes first, as `_split` has it.
    return sorted(entries, key=lambda each: (-each.finished_at, each.status == FAILED))


def _entries(status: Status, pairs: list[tuple[bytes, float]]) -> list[HistoryEntry]:
    return [each for pair in pairs if (each := read(status, *pair)) is not None]
