"""Runs in another order than that of their ends.

Redis keeps them by their end alone. So the newest ones that match are read, as many as a search gives, and those are
sorted; what is older does not take part, and the answer says so.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, get_args

from django_cogworker.exceptions import InvalidQuery
from django_cogworker.features.history.records import HistoryEntry
from django_cogworker.features.history.searching import HistorySlice

Order = Literal["seconds", "wait", "attempt", "job_class", "queue", "error_class"]
_NUMBERS = ("seconds", "wait", "attempt")


@dataclasses.dataclass(frozen=True, slots=True)
class HistoryRanking:
    """Runs in order. `whole`: all that match are among them; where not, they are the newest that match, of the
    `looked_at` newest runs. `total`: so many are kept of the status that was asked for.
    """

    entries: list[HistoryEntry]
    whole: bool
    looked_at: int
    total: int


def check_order(by: Any) -> None:
    if by not in get_args(Order):
        raise InvalidQuery(f"by is {by!r}; it takes {', '.join(map(repr, get_args(Order)))}.")


def rank(found: HistorySlice, by: Order, descending: bool) -> HistoryRanking:
    """What was found, newest first, put in order. Of equals the newest comes first, what has no such value last."""
    known = [each for each in found.entries if _value(each, by) is not None]
    others = [each for each in found.entries if _value(each, by) is None]
    # The sort is stable, also in reverse: of equals the newest stays in front.
    known.sort(key=lambda each: _value(each, by), reverse=descending)
    return HistoryRanking([*known, *others], found.cursor is None, found.looked_at, found.total)


def _value(run: HistoryEntry, by: Order) -> Any:
    value = getattr(run, by)
    if by in _NUMBERS:
        return value if isinstance(value, (int, float)) else None
    return value.casefold() if isinstance(value, str) and value else None
