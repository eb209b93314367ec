"""When cron lines are due: twelve zones, both changes of the clock, each kind of line.

The expected moments of fixed times are written out in UTC; those of lines with `*` are what the wall
clock shows, minute by minute. Nothing here reads a clock: it stands where the test puts it.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from django_cogworker.features.periodic.cron import Cron

UTC = dt.UTC


def epoch(text: str) -> float:
    return dt.datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def due(line: str, zone: str, begin: str, end: str) -> list[str]:
    """The slots after `begin` and up to `end` (UTC) as `day hour:minute`."""
    found = []
    for slot in Cron(line, zone).slots(epoch(begin)):
        if slot > epoch(end):
            break
        found.append(dt.datetime.fromtimestamp(slot, UTC).strftime("%d %H:%M"))
    return found


#: zone, begin and end in UTC, a line whose time does not exist that day, when it is due; the end of the gap.
GAPS = [
    ("Europe/Paris", "2026-03-28 12:00", "2026-03-30 12:00", "30 2 * * *", "29 01:00", "30 00:30"),
    ("Europe/London", "2026-03-28 12:00", "2026-03-30 12:00", "15 1 * * *", "29 01:00", "30 00:15"),
    ("America/New_York", "2026-03-07 18:00", "2026-03-09 18:00", "30 2 * * *", "08 07:00", "09 06:30"),
    ("America/Sao_Paulo", "2018-11-03 12:00", "2018-11-05 12:00", "0 0 * * *", "04 03:00", "05 02:00"),
    ("Australia/Lord_Howe", "2026-10-03 04:00", "2026-10-05 04:00", "10 2 * * *", "03 15:30", "04 15:10"),
    ("Africa/Cairo", "2026-04-23 12:00", "2026-04-25 12:00", "30 0 * * *", "23 22:00", "24 21:30"),
    ("Asia/Beirut", "2026-03-28 12:00", "2026-03-30 12:00", "0 0 * * *", "28 22:00", "29 21:00"),
    ("Pacific/Apia", "2011-12-29 20:00", "2011-12-31 20:00", "0 9 30 12 *", "30 10:00", ""),
    ("Africa/Casablanca", "2026-03-21 12:00", "2026-03-23 12:00", "30 2 * * *", "22 02:00", "23 01:30"),
    ("Pacific/Chatham", "2026-09-26 00:00", "2026-09-27 20:00", "0 3 * * *", "26 14:00", "27 13:15"),
    ("Asia/Tehran", "2022-03-21 12:00", "2022-03-23 12:00", "30 0 * * *", "21 20:30", "22 20:00"),
    ("Asia/Pyongyang", "2018-05-04 00:00", "2018-05-05 20:00", "45 23 * * *", "04 15:00", "05 14:45"),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "begin", "end", "line", "first", "second"), GAPS)
def test_a_time_that_does_not_exist_runs_once_after_the_gap(zone, begin, end, line, first, second):
    """CE-7 RQ-9 Q2-5"""
    assert due(line, zone, begin, end) == [each for each in (first, second) if each]


#: Zones whose clock moves by half an hour.
HALF = ("Australia/Lord_Howe", "Asia/Pyongyang")

#: zone, begin and end in UTC, a line whose time comes twice, when it is due.
OVERLAPS = [
    ("Europe/Paris", "2026-10-24 12:00", "2026-10-26 12:00", "30 2 * * *", ["25 00:30", "26 01:30"]),
    ("Europe/London", "2026-10-24 12:00", "2026-10-26 12:00", "15 1 * * *", ["25 00:15", "26 01:15"]),
    ("America/New_York", "2026-10-31 18:00", "2026-11-02 18:00", "30 1 * * *", ["01 05:30", "02 06:30"]),
    ("America/Sao_Paulo", "2018-02-17 12:00", "2018-02-19 12:00", "30 23 * * *", ["18 01:30", "19 02:30"]),
    ("Australia/Lord_Howe", "2026-04-04 04:00", "2026-04-06 04:00", "45 1 * * *", ["04 14:45", "05 15:15"]),
    ("Africa/Cairo", "2026-10-29 12:00", "2026-10-31 12:00", "30 23 * * *", ["29 20:30", "30 21:30"]),
    ("Asia/Beirut", "2026-10-24 12:00", "2026-10-26 12:00", "30 23 * * *", ["24 20:30", "25 21:30"]),
    ("Pacific/Apia", "2021-04-03 00:00", "2021-04-04 20:00", "30 3 * * *", ["03 13:30", "04 14:30"]),
    ("Africa/Casablanca", "2026-02-14 12:00", "2026-02-16 12:00", "30 2 * * *", ["15 01:30", "16 02:30"]),
    ("Pacific/Chatham", "2026-04-04 00:00", "2026-04-05 20:00", "0 3 * * *", ["04 13:15", "05 14:15"]),
    ("Asia/Tehran", "2022-09-21 12:00", "2022-09-23 12:00", "30 23 * * *", ["21 19:00", "22 20:00"]),
    ("Asia/Pyongyang", "2015-08-14 00:00", "2015-08-15 20:00", "45 23 * * *", ["14 14:45", "15 15:15"]),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "begin", "end", "line", "expected"), OVERLAPS)
def test_a_time_that_comes_twice_runs_once(zone, begin, end, line, expected):
    """CE-7 RQ-9 Q2-5"""
    assert due(line, zone, begin, end) == expected


@pytest.mark.parametrize("zone", [each[0] for each in GAPS])
@pytest.mark.parametrize("changes", [GAPS, OVERLAPS], ids=["forward", "back"])
def test_every_hour_and_every_quarter_run_in_real_time(zone, changes):
    """CE-7: never a pause longer, nor a time nearer, than the interval says, whatever the wall clock does.

    Where the clock moves by half an hour, the hour there is half as long or half as long again.
    """
    begin, end = next(each[1:3] for each in changes if each[0] == zone)

    def steps(line: str) -> set[int]:
        found = []
        for slot in Cron(line, zone).slots(epoch(begin)):
            if slot > epoch(end):
                break
            found.append(slot)
        return {later - earlier for earlier, later in itertools.pairwise(found)}

    assert steps("*/15 * * * *") == {900}
    hourly = steps("0 * * * *")
    assert hourly == ({1800, 3600, 5400} & hourly if zone in HALF else {3600})


def change(row: Any) -> dt.datetime:
    """The moment at which the row's zone sets its clocks."""
    zone = ZoneInfo(row[0])
    moment = dt.datetime.fromtimestamp(epoch(row[1]), UTC)
    offset = moment.astimezone(zone).utcoffset()
    while moment.astimezone(zone).utcoffset() == offset:
        moment += dt.timedelta(minutes=1)
    assert moment.timestamp() < epoch(row[2])
    return moment


def shown(row: Any, minutes: set[int], begin: dt.datetime, end: dt.datetime) -> list[int]:
    """The moments after the one and up to the other at which the clock on the wall shows such minutes."""
    found, moment = [], begin
    while moment < end:
        moment += dt.timedelta(minutes=1)
        if moment.astimezone(ZoneInfo(row[0])).minute in minutes:
            found.append(int(moment.timestamp()))
    return found


def by_a_frozen_clock(
    cron: Cron, begin: dt.datetime, end: dt.datetime, minutes: int = 30
) -> list[int]:
    """What is due when the clock stands, is asked twice, and is set forward again and again."""
    last, moment, found = begin.timestamp(), begin, []
    while moment < end:
        moment += dt.timedelta(minutes=minutes)
        new = cron.newest(moment.timestamp(), last, limit=20)
        found += new
        last = max([last, *new])
        assert cron.newest(moment.timestamp(), last, limit=20) == []
    return found


@pytest.mark.parametrize("row", [*GAPS, *OVERLAPS], ids=lambda row: f"{row[0]}-{row[1][:10]}")
@pytest.mark.parametrize(
    ("line", "minutes"),
    [
        ("0 * * * *", {0}),
        ("20 * * * *", {20}),
        ("*/15 * * * *", {0, 15, 30, 45}),
        ("*/7 * * * *", set(range(0, 60, 7))),
    ],
)
def test_every_hour_and_every_n_minutes_follow_the_wall_clock_through_both_changes(
    row, line, minutes
):
    """CE-7 RQ-9 Q2-5"""
    middle = change(row)
    begin, end = middle - dt.timedelta(hours=5), middle + dt.timedelta(hours=5)
    found = by_a_frozen_clock(Cron(line, row[0]), begin, end)
    assert found == shown(row, minutes, begin, end)


@pytest.mark.parametrize("row", [*GAPS, *OVERLAPS], ids=lambda row: f"{row[0]}-{row[1][:10]}")
def test_a_fixed_time_is_due_once_however_often_the_clock_is_asked(row):
    """CE-7 RQ-9 Q2-5"""
    zone, begin, end, line, *expected = row
    found = by_a_frozen_clock(
        Cron(line, zone),
        dt.datetime.fromtimestamp(epoch(begin), UTC),
        dt.datetime.fromtimestamp(epoch(end), UTC),
        minutes=240,
    )
    if row in OVERLAPS:
        (expected,) = expected
    assert [dt.datetime.fromtimestamp(each, UTC).strftime("%d %H:%M") for each in found] == [
        each for each in expected if each
    ]


@pytest.mark.parametrize(
    ("line", "begin"),
    [
        ("* * 1 1 *", "2026-12-01"),
        ("* * * * 1 *", "2026-12-01"),
        ("* * * 1 1 *", "2026-12-31"),
        ("* * * * * *", "2026-06-01"),
    ],
)
def test_looking_back_walks_through_few_slots_however_dense_the_line(monkeypatch, line, begin):
    """A line that is due each second of a month, looked for half a year later."""
    real, seen = Cron.slots, []

    def counted(cron: Cron, after: float) -> Iterator[int]:
        for slot in real(cron, after):
            seen.append(slot)
            yield slot

    cron = Cron(line, "Europe/Paris")
    monkeypatch.setattr(Cron, "slots", counted)
    until = epoch(begin)
    found = cron.newest(until, limit=3)
    assert len(seen) < 5000
    assert len(found) == 3
    assert found[-1] <= until
    assert next(slot for slot in real(cron, found[-1])) > until
    assert list(itertools.islice(real(cron, found[0] - 1), 3)) == found


def test_quarters_of_a_fixed_hour_that_does_not_exist_run_once():
    begin, end = "2026-03-28 12:00", "2026-03-29 12:00"
    assert due("*/15 2 * * *", "Europe/Paris", begin, end) == ["29 01:00"]
    back = due("*/15 2 * * *", "Europe/Paris", "2026-10-24 12:00", "2026-10-25 12:00")
    assert back == ["25 00:00", "25 00:15", "25 00:30", "25 00:45"]


def test_every_second_hour_runs_by_the_wall_clock_and_misses_no_gap():
    forward = due("0 */2 * * *", "Europe/Paris", "2026-03-28 22:30", "2026-03-29 02:30")
    assert forward == ["28 23:00", "29 01:00", "29 02:00"]
    back = due("0 */2 * * *", "Europe/Paris", "2026-10-24 21:30", "2026-10-25 03:30")
    assert back == ["24 22:00", "25 00:00", "25 01:00", "25 03:00"]


def test_slots_that_are_looked_for_backwards_are_those_of_the_walk_forwards():
    cron = Cron("30 2 * * *", "Europe/Paris")
    walked = []
    for slot in cron.slots(epoch("2026-10-20 00:00")):
        if slot > epoch("2026-10-28 00:00"):
            break
        walked.append(slot)
    assert cron.newest(epoch("2026-10-28 00:00"), limit=3) == walked[-3:]
    assert cron.newest(walked[-1], walked[-3]) == walked[-1:]
    assert cron.newest(walked[-1], walked[-1]) == []


def test_seconds_stand_first():
    cron = Cron("*/20 * * * * *", "UTC")
    assert cron.next_after(1000.5) == 1020
    assert Cron("30 5 * * * *", "UTC").next_after(0) == 330


def test_a_rare_line_and_an_alias_are_found():
    assert due("0 0 29 2 *", "UTC", "2024-03-01", "2032-03-01") == ["29 00:00", "29 00:00"]
    assert due("@daily", "UTC", "2026-01-01", "2026-01-02") == ["02 00:00"]


def test_a_hashed_field_is_the_same_everywhere():
    assert Cron("H H * * *", "UTC", "a").next_after(0) == Cron("H H * * *", "UTC", "a").next_after(
        0
    )
    assert Cron("H H * * *", "UTC", "a").next_after(0) != Cron("H H * * *", "UTC", "b").next_after(
        0
    )


@pytest.mark.parametrize(
    ("line", "zone", "says"),
    [
        ("0 0 31 2 *", "UTC", "never occur"),
        ("61 * * * *", "UTC", "out of range"),
        ("* * * *", "UTC", "has 4 fields"),
        ("0 0 0 1 1 * 2030", "UTC", "has 7 fields"),
        ("R * * * *", "UTC", "random"),
        ("@every 5m", "UTC", "2 fields"),
        ("0 3 * * *", "Europe/Pari", "no time zone"),
        ("0 3 * * *", "../etc", "no time zone"),
    ],
)
def test_a_line_that_cannot_be_used_is_refused(line, zone, says):
    """TQ-8 TQ-12"""
    with pytest.raises(ValueError, match=says):
        Cron(line, zone)
