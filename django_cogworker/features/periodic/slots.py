"""The slots of entries as a test's frozen clock drives them: the rules of `ticker`, without Redis and its records.

An entry is primed where the clock begins, so its first slot is one after that moment; `run_at_first_start` makes
the newest one before it a job. Slots that a worker saw come are on time; after a pause `catch_up` decides. A slot
that is blocked (the run before it has not ended) is tried for as long as a worker tries, then it counts as skipped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from django_cogworker.features.periodic.entry import Entry
from django_cogworker.features.periodic.missed import plan
from django_cogworker.features.periodic.pushing import push_slot
from django_cogworker.features.periodic.ticker import MOST, PATIENCE, PUNCTUAL


@dataclasses.dataclass(slots=True)
class _Row:
    """Where one entry is."""

    entry: Entry
    last: int
    #: Slots that wait for the end of an earlier run, the earliest first.
    blocked: list[int]


class Slots:
    """Those of all entries of one test."""

    def __init__(self, entries: Sequence[Entry], now: float) -> None:
        self._rows = []
        for entry in entries:
            newest = next(iter(entry.cron.newest(now)), None)
            self._rows.append(_Row(entry, int(now) if newest is None else newest, []))
            if entry.run_at_first_start and newest is not None:
                push_slot(entry, newest)

    def next_after(self, now: float) -> float | None:
        moments: list[float] = []
        for row in self._rows:
            moments += [slot + PATIENCE for slot in row.blocked[:1]]
            following = row.entry.cron.next_after(max(now, row.last))
            if following is not None:
                moments.append(following)
        return min((each for each in moments if each > now), default=None)

    def push_due(self, now: float, *, watched: bool) -> None:
        due = []
        for row in self._rows:
            since = float(row.last) if watched else now - PUNCTUAL
            found = plan(row.entry, row.last, since, now, MOST)
            if found.wanted or found.left_out:
                row.last = max([*found.wanted, *(each["slot"] for each in found.left_out)])
            row.blocked += found.wanted
            due += [(slot, row) for slot in row.blocked]
        for slot, row in sorted(due, key=lambda each: each[0]):
            if row.blocked[0] != slot:
                continue  # behind one that is blocked
            if push_slot(row.entry, slot) is not None or now - slot >= PATIENCE:
                row.blocked.remove(slot)
