"""The rows of a table that the effect `tally` counts in: a hash with a bounded number of fields.

A row is `<last moment> <count> <first moment> <hour>:<count in that hour> …`, a new line, and a text. Hours are
epoch seconds // 3600, the last 24 at the most. `lib/effects.lua` writes the same without this file.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

HOUR = 3600
HOURS = 24

_ROW = re.compile(rb"(\S+) (\d+) (\S+)([\d: ]*)\n(.*)", re.DOTALL)


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One row. `hours`: how often in which hour; hours without any are absent."""

    last: float
    count: int
    first: float
    hours: dict[int, int]
    text: str


def read(raw: bytes) -> Row | None:
    """The row, or `None` for what is none of ours."""
    found = _ROW.fullmatch(raw)
    if found is None:
        return None
    last, count, first, hours, text = found.groups()
    try:
        pairs = (each.split(b":") for each in hours.split())
        by_hour = {int(hour): int(number) for hour, number in pairs}
        return Row(float(last), int(count), float(first), by_hour, text.decode("utf-8", "replace"))
    except ValueError:
        return None


def counted(had: bytes | None, at: str, text: str) -> str:
    """The row `had` with one more at that moment."""
    hour = int(float(at) // HOUR)
    row = None if had is None else read(had)
    if row is None:
        return f"{at} 1 {at} {hour}:1\n{text}"
    hours = {each: number for each, number in row.hours.items() if each > hour - HOURS}
    hours[hour] = hours.get(hour, 0) + 1
    last = max(row.last, float(at))
    told = " ".join(f"{each}:{number}" for each, number in hours.items())
    return f"{last:.3f} {row.count + 1} {row.first:.3f} {told}\n{text}"


def surplus(table: Mapping[bytes, bytes], most: int, oldest: float) -> list[bytes]:
    """The fields that have to go before a new one comes: of a full table those that are too old, and at the
    least the oldest tenth.
    """
    if len(table) < most:
        return []
    lasts = {field: row.last if (row := read(raw)) else 0.0 for field, raw in table.items()}
    by_age = sorted(lasts, key=lambda field: lasts[field])
    least = max(1, most // 10)
    return by_age[:least] + [each for each in by_age[least:] if lasts[each] < oldest]
