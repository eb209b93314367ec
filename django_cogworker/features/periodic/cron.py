"""When a cron line is due: croniter's arithmetic on the wall clock, and our rule for clock changes on top.

A slot is a moment in epoch seconds. The rule:

* A local time that does not exist (clocks go forward) is due once, at the first valid moment after the gap.
* A local time that comes twice (clocks go back) is due once, the first time.
* With `*` or `*/n` in the hour it is due each time that the wall clock shows it, so every real hour; with
`*` nothing is made up for a gap.

croniter alone does the second wrongly. So it is asked for wall-clock times without a zone, and the
zone's offsets are laid over them here, one stretch of constant offset after the other.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from itertools import islice, takewhile
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import croniter
from croniter.croniter import CroniterError

UTC = dt.UTC
SECOND = dt.timedelta(seconds=1)
DAY = dt.timedelta(days=1)
ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
ALLOWED = (
    "five fields (minute hour day month weekday), six with seconds first, or one of "
    f"{', '.join(ALIASES)}"
)
#: How far back a slot is looked for: the longest pause of a line that can ever be due is 8 years.
HORIZON = 9 * 366 * 86_400


def zone_of(name: str) -> ZoneInfo:
    """The zone of that IANA name. Raises `ValueError`."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"{name!r} is no time zone; allowed is an IANA name such as 'Europe/Paris'"
        ) from None


class Cron:
    """One line in one zone. Raises `ValueError` for a line that cannot be used.

    `seed` is what an `H` in a field is worked out from: the same in all processes.
    """

    def __init__(self, line: str, zone: str, seed: str = "") -> None:
        self.line, self.zone_name, self._seed = line, zone, seed
        self._zone = zone_of(zone)
        fields = ALIASES.get(line.strip().lower(), line).split()
        if len(fields) not in (5, 6):
            raise ValueError(f"{line!r} has {len(fields)} fields; allowed are {ALLOWED}")
        if any(each.upper().startswith("R") for each in fields):
            raise ValueError(f"{line!r} has a random field (R), which each worker would draw anew")
        self.fields = tuple(fields)
        self._text = " ".join(fields)
        self._with_seconds = len(fields) == 6
        hour = fields[-4]
        try:
            self._walk(dt.datetime(2024, 1, 1))
            expanded, _ = croniter.expand(
                self._text,
                hash_id=seed.encode(),
                strict=True,
                second_at_beginning=self._with_seconds,
            )
        except (CroniterError, ValueError, KeyError) as error:
            raise ValueError(f"{line!r} cannot be read ({error}); allowed are {ALLOWED}") from None
        self.every_hour = expanded[1] == ["*"] or len(set(expanded[1])) == 24
        #: Due each time that the wall clock shows it, also the second time.
        self.real = self.every_hour or hour.startswith("*")

    @property
    def looks_mistaken(self) -> bool:
        """Every minute (or second) of hours that were chosen: mostly `* */2 * * *` for `0 */2 * * *`."""
        lower = self.fields[:-4]
        return lower[-1] == "*" and not self.every_hour

    def slots(self, after: float) -> Iterator[int]:
        """All slots after that moment, the earliest first. Ends where the line is never due again."""
        moment = dt.datetime.fromtimestamp(after, UTC)
        offset = self._offset(moment)
        walk = self._walk(_wall(moment, offset))
        while (wall := _next(walk)) is not None:
            found = (wall - offset).replace(tzinfo=UTC)
            change = self._change(moment, found)
            if change is None:
                moment = found
                if self.real or not self._came_before(wall, found):
                    yield int(found.timestamp())
                continue
            new = self._offset(change)
            begin = _wall(change, new)
            if new > offset and not self.every_hour and wall < begin:
                yield int(change.timestamp())  # it lay in the gap
                moment, walk = change, self._walk(begin)
            else:
                moment, walk = change, self._walk(begin - SECOND)
            offset = new

    def next_after(self, moment: float) -> int | None:
        """The first slot after that moment."""
        return next(self.slots(moment), None)

    def newest(self, until: float, after: float | None = None, limit: int = 1) -> list[int]:
        """The newest slots up to and including that moment, the earliest first, none up to `after`.

        The stretch that is walked through grows until it holds enough, and is halved where it holds
        too many: neither a rare line nor a dense one after a long pause takes long.
        """
        bottom = max(until - HORIZON, 0.0) if after is None else after
        most = 2 * limit + 100
        reach, start = 60.0, max(until - 60.0, bottom)
        sparse = until
        dense: float | None = None
        while True:
            found = self._between(start, until, most)
            if len(found) > most:
                dense = start
            elif len(found) >= limit or start <= bottom:
                return found[-limit:]
            else:
                sparse = start
            if dense is not None:
                start = (dense + sparse) / 2
            else:
                reach *= 4
                start = max(until - reach, bottom)

    def _between(self, after: float, until: float, most: int) -> list[int]:
        """The slots there; one more than `most` where there are more."""
        return list(islice(takewhile(lambda slot: slot <= until, self.slots(after)), most + 1))

    def _walk(self, wall: dt.datetime) -> croniter[dt.datetime]:
        return croniter(
            self._text,
            wall,
            ret_type=dt.datetime,
            hash_id=self._seed.encode(),
            second_at_beginning=self._with_seconds,
        )

    def _offset(self, moment: dt.datetime) -> dt.timedelta:
        return moment.astimezone(self._zone).utcoffset() or dt.timedelta()

    def _change(self, low: dt.datetime, high: dt.datetime) -> dt.datetime | None:
        """The first change of the offset after `low` and up to `high`."""
        offset = self._offset(low)
        while low < high:
            step = min(low + DAY, high)
            if self._offset(step) != offset:
                break
            low = step
        else:
            return None
        while step - low > SECOND:
            middle = low + (step - low) / 2
            if self._offset(middle) == offset:
                low = middle
            else:
                step = middle
        return step.replace(microsecond=0)

    def _came_before(self, wall: dt.datetime, moment: dt.datetime) -> bool:
        return wall.replace(tzinfo=self._zone).astimezone(UTC) < moment


def _wall(moment: dt.datetime, offset: dt.timedelta) -> dt.datetime:
    return moment.replace(tzinfo=None) + offset


def _next(walk: croniter[dt.datetime]) -> dt.datetime | None:
    try:
        found: dt.datetime = walk.get_next(dt.datetime)
    except (CroniterError, OverflowError, ValueError):
        return None  # it is never due again
    return found
