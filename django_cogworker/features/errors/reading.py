"""The groups as values. The whole table is read at once: it is bounded, and so any order costs the same."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from typing import Any, Literal

from django_cogworker.exceptions import InvalidQuery
from django_cogworker.features.errors.feature import TTL, groups_key
from django_cogworker.store import tally
from django_cogworker.store.scripted import text
from django_cogworker.store.store import get_store

MAX_LIMIT = 500

Order = Literal["last_seen", "first_seen", "count", "last_day"]


@dataclasses.dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Failures with the same class of job, class of error, and place.

    `where`: module and function of the project in which the error was raised, `line` the file and line of the
    last one. `message` and `jid` are those of the last one. `count` is since `first_seen`, `hours` the last 24
    hours, the oldest first, ending with the one that has begun. Times are epoch seconds.
    """

    id: str
    job_class: str
    error_class: str
    where: str
    line: str
    count: int
    first_seen: float
    last_seen: float
    message: str
    jid: str
    hours: tuple[int, ...]

    @property
    def last_day(self) -> int:
        """How often in these 24 hours."""
        return sum(self.hours)


@dataclasses.dataclass(frozen=True, slots=True)
class ErrorGroupPage:
    """Some groups, and how many there are in all."""

    groups: list[ErrorGroup]
    total: int


_ORDERS: dict[str, Callable[[ErrorGroup], float]] = {
    "last_seen": lambda group: group.last_seen,
    "first_seen": lambda group: group.first_seen,
    "count": lambda group: group.count,
    "last_day": lambda group: group.last_day,
}


def error_groups(
    *, job_class: Any = None, order: Order = "last_seen", offset: int = 0, limit: int = 25
) -> ErrorGroupPage:
    """Groups of the last 30 days from the `offset`-th on, the highest of `order` first. One round trip.

    `job_class`: of that job class or its name alone. Raises `InvalidQuery`.
    """
    if order not in _ORDERS:
        known = ", ".join(map(repr, _ORDERS))
        raise InvalidQuery(f"order is {order!r}; it takes {known}.")
    asked: list[tuple[str, Any, int]] = [("offset", offset, 0), ("limit", limit, 1)]
    for name, value, least in asked:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 10**9:
            raise InvalidQuery(f"{name} is {value!r}; it takes a whole number from {least}.")
    store = get_store()
    rows: Any = store.client.hgetall(groups_key(store.keys))
    wanted = None if job_class is None else str(getattr(job_class, "job_name", job_class))
    found = [
        group
        for id_, row in rows.items()
        if (group := _group(text(id_), row)) is not None and wanted in (None, group.job_class)
    ]
    found.sort(key=lambda group: (-_ORDERS[order](group), -group.last_seen, group.id))
    return ErrorGroupPage(found[offset : offset + min(limit, MAX_LIMIT)], len(found))


def error_group(group: str) -> ErrorGroup | None:
    """The group with that id, if it is known."""
    store = get_store()
    row: Any = store.client.hget(groups_key(store.keys), group)
    return None if row is None else _group(group, row)


def forget_error_group(group: str) -> bool:
    """Count it from nothing again, for what was mended; false where there is none. No job is touched."""
    store = get_store()
    return bool(store.client.hdel(groups_key(store.keys), group))


def _group(id_: str, raw: bytes) -> ErrorGroup | None:
    """The value of a row; `None` for what is none of ours, or too old."""
    row, now = tally.read(raw), time.time()
    if row is None or row.last < now - TTL:
        return None
    try:
        told = json.loads(row.text)
        said = [str(told[each]) for each in ("class", "error", "where", "line", "message", "jid")]
    except (ValueError, KeyError, TypeError):
        return None
    hour = int(now // tally.HOUR)
    hours = tuple(row.hours.get(each, 0) for each in range(hour - tally.HOURS + 1, hour + 1))
    job_class, error_class, where, line, message, jid = said
    return ErrorGroup(
        id=id_,
        job_class=job_class,
        error_class=error_class,
        where=where,
        line=line,
        count=row.count,
        first_seen=row.first,
        last_seen=row.last,
        message=message,
        jid=jid,
        hours=hours,
    )
