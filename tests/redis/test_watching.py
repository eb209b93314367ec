"""What pages ask: many things at once, in few round trips, and runs looked through with a cursor."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import override_settings

from django_cogworker.api import (
    History,
    PeriodicSet,
    Queue,
    class_hours,
    class_names,
    class_stats,
    class_times,
    percentiles,
    queue_names,
    queue_states,
    redis_facts,
)
from django_cogworker.exceptions import InvalidQuery
from tests.project.jobs import Append, AppendLater
from tests.support.round_trips import counted

RUN = {"class": "shop.jobs.Pay", "queue": "default", "attempt": 1, "seconds": 1.5, "args": [1]}


def keep(client, status, jid, ended, **more):
    """A run in the history."""
    record = json.dumps({"jid": jid, **RUN, **more}, separators=(",", ":"))
    client.zadd(f"cogworker:history:{status}", {record: ended})


def walk(**asked):
    """All jids that a search finds, page by page, and how many pages it took."""
    found, cursor, pages = [], None, 0
    while pages < 100:
        page = History().search(cursor=cursor, **asked)
        found += [each.jid for each in page.entries]
        cursor, pages = page.cursor, pages + 1
        if cursor is None:
            break
    return found, pages


# -- queues and the server


def test_the_states_of_many_queues_are_one_round_trip(redis_client):
    Append.perform_async("a")
    Append.set(priority=5).perform_async("b")
    AppendLater.perform_async("c")
    Queue("low").pause()
    redis_client.set("cogworker:queue:spoilt", "x")
    names = [*queue_names(), "none", "spoilt"]
    with counted() as trips:
        states = queue_states(names)
    assert trips.number == 1
    assert [(each.name, each.size, each.paused) for each in states] == [
        ("default", 2, False),
        ("low", 1, True),
        ("none", 0, False),
        ("spoilt", 0, False),
    ]
    assert states[0].latency == pytest.approx(Queue("default").latency, abs=5)
    assert states[2].latency == 0


def test_the_server_tells_of_itself_without_credentials(redis_client, redis_url):
    with counted() as trips:
        facts = redis_facts()
    assert trips.number == 1
    assert facts.version is not None
    assert facts.product in ("redis", "valkey")
    assert facts.memory is not None
    assert facts.memory > 100_000
    assert facts.connections is not None
    assert "@" not in facts.where


# -- periodic entries


def test_the_states_of_all_entries_are_two_round_trips(redis_client):
    entries = {
        f"every{at}": {"job": "tests.project.jobs.Append", "cron": "0 3 * * *", "args": ["a"]}
        for at in range(5)
    }
    with override_settings(COGWORKER_PERIODIC=entries):
        PeriodicSet()["every1"].disable()
        for jid, slot in (("j1", 100), ("j2", 200)):
            line = json.dumps({"slot": slot, "at": slot, "jid": jid})
            redis_client.rpush("cogworker:periodic:ledger:every2", line)
        redis_client.rpush("cogworker:periodic:outcomes:every2", "200 j2 failed")
        with counted() as trips:
            states = {each.entry.name: each for each in PeriodicSet().states()}
        assert trips.number == 2
        assert [name for name, each in states.items() if each.disabled] == ["every1"]
        assert states["every1"].next_run is None
        assert states["every0"].next_run == PeriodicSet()["every0"].next_runs()[0]
        assert states["every0"].last is None
        assert states["every2"].last == {"slot": 200, "at": 200, "jid": "j2", "outcome": "failed"}


# -- classes


def test_a_class_hour_by_hour_adds_up_to_its_day(redis_client):
    hour = int(time.time() // 3600)
    name = "tests.project.jobs.Append"
    for back, runs, failures in ((0, 3, 1), (5, 10, 0), (30, 99, 0)):
        key = f"cogworker:history:times:{name}:{hour - back}"
        redis_client.hset(
            key, mapping={"success": runs - failures, "failed": failures, "r10": runs}
        )
    redis_client.zadd("cogworker:history:classes", {name: time.time(), "gone.Long": 1})
    with counted() as trips:
        hours = class_hours(name)
    assert trips.number == 1
    assert [(each.at // 3600 - hour, each.runs, each.failures) for each in hours if each.runs] == [
        (-5, 10, 0),
        (0, 3, 1),
    ]
    assert len(hours) == 25
    assert class_names() == [name]
    assert percentiles(name).runs == sum(each.runs for each in hours) == 13
    assert class_stats([name, "unknown"]) == [percentiles(name)]


def test_a_class_over_a_week_in_parts_of_a_day(redis_client):
    hour = int(time.time() // 3600)
    begin = hour - 168 + -(hour - 168) % 6
    name = "tests.project.jobs.Append"
    for at, runs, failures in ((begin - 1, 99, 0), (begin, 2, 0), (begin + 5, 4, 1), (hour, 8, 2)):
        key = f"cogworker:history:times:{name}:{at}"
        redis_client.hset(
            key, mapping={"success": runs - failures, "failed": failures, "r10": runs, "w4": runs}
        )
    with counted() as trips:
        times = class_times(name, hours=168, every=6)
    assert trips.number == 1
    assert (times.stats.runs, times.stats.failures) == (14, 3)
    assert [(each.at // 3600, each.runs, each.failures) for each in times.hours if each.runs] == [
        (begin, 6, 1),
        (hour - hour % 6, 8, 2),
    ]
    assert all(each.at % (6 * 3600) == 0 for each in times.hours)
    assert times.hours[0].seconds.p99 == times.stats.seconds.p50 != times.stats.wait.p50
    assert len(class_times(name, hours=1, every=24).hours) == 1
    for given in ({"hours": 169}, {"hours": 0}, {"every": 25}, {"every": True}):
        with pytest.raises(InvalidQuery, match="whole number"):
            class_times(name, **given)


# -- runs


def test_a_page_of_runs_is_one_round_trip_and_the_cursor_goes_on_without_gap_or_repeat(
    redis_client,
):
    # Several end in the same moment, of both kinds.
    for at in range(40):
        keep(redis_client, "failed" if at % 3 == 0 else "success", f"j{at}", 1000 + at // 4)
    with counted() as trips:
        page = History().search(limit=10)
    assert trips.number == 1
    assert (len(page.entries), page.total, page.looked_at) == (10, 40, 10)
    every, pages = walk(limit=10)
    assert pages == 4
    assert sorted(every) == sorted(f"j{at}" for at in range(40))
    ends = [int(each[1:]) // 4 for each in every]
    assert ends == sorted(ends, reverse=True)
    upwards, _ = walk(limit=7, oldest_first=True)
    ends = [int(each[1:]) // 4 for each in upwards]
    assert ends == sorted(ends)
    assert sorted(upwards) == sorted(every)


def test_runs_that_end_meanwhile_move_nothing_out_of_sight(redis_client):
    for at in range(10):
        keep(redis_client, "success", f"j{at}", 1000 + at)
    first = History().search(limit=4)
    for at in range(10, 20):
        keep(redis_client, "success", f"j{at}", 1000 + at)
    second = History().search(limit=4, cursor=first.cursor)
    assert [each.jid for each in first.entries + second.entries] == [
        f"j{at}" for at in range(9, 1, -1)
    ]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"job_class": "shop.jobs.Mail"}, ["j3", "j2"]),
        ({"job_class": "shop.jobs.mail"}, []),
        ({"jid": "j1"}, ["j1"]),
        ({"text": "KÖLN"}, ["j2"]),
        ({"text": "refused"}, ["j3"]),
        ({"text": "connection REF"}, ["j3"]),
        ({"text": '"a": 7'}, ["j1"]),
        ({"text": "shop.jobs.mail", "status": "success"}, ["j2"]),
        ({"text": "nothing"}, []),
        ({"queue": "slow"}, ["j1"]),
        ({"queue": "slo"}, []),
        ({"since": 1002}, ["j3", "j2"]),
        ({"until": datetime.fromtimestamp(1001, UTC)}, ["j1", "j0"]),
        ({"since": 1001, "until": 1002, "oldest_first": True}, ["j1", "j2"]),
        ({"since": 1001, "until": 1003, "status": "success", "text": "j2"}, ["j2"]),
        ({"since": 1004}, []),
    ],
)
def test_runs_are_found_by_what_they_are(redis_client, asked, found):
    keep(redis_client, "success", "j0", 1000)
    keep(redis_client, "success", "j1", 1001, kwargs={"a": 7}, queue="slow")
    keep(redis_client, "success", "j2", 1002, **{"class": "shop.jobs.Mail", "args": ["Köln"]})
    error = {"error_class": "OSError", "error_message": "Connection refused"}
    keep(redis_client, "failed", "j3", 1003, **{"class": "shop.jobs.Mail"}, **error)
    assert walk(**asked)[0] == found


def test_a_search_ends_with_its_budget_and_goes_on_from_there(redis_client):
    runs = {
        json.dumps({"jid": f"j{at}", **RUN}, separators=(",", ":")): 1000 + at
        for at in range(1_500)
    }
    redis_client.zadd("cogworker:history:success", runs)
    page = History().search(jid="j3", budget=0)
    assert page.entries == []
    assert page.looked_at == 500
    assert page.cursor
    assert walk(jid="j3", budget=0) == (["j3"], 4)


def test_a_search_loses_none_where_one_kind_is_rarer_than_the_other(redis_client):
    """Read in chunks, the rare kind reaches much further back than the other."""
    for kind, step, many in (("success", 1, 1_200), ("failed", 3, 600)):
        runs = {
            json.dumps({"jid": f"{kind}-{at}", **RUN}, separators=(",", ":")): 9_000 - step * at
            for at in range(many)
        }
        redis_client.zadd(f"cogworker:history:{kind}", runs)
    every, _ = walk(text="pay", limit=1_000)
    assert len(every) == len(set(every)) == 1_800
    ends = [
        9_000 - int(at) * (1 if kind == "success" else 3)
        for kind, at in (each.split("-") for each in every)
    ]
    assert ends == sorted(ends, reverse=True)


@pytest.mark.parametrize(
    ("by", "descending", "found"),
    [
        ("seconds", True, ["j3", "j2", "j0", "j1"]),
        ("seconds", False, ["j0", "j2", "j3", "j1"]),
        ("attempt", True, ["j1", "j3", "j2", "j0"]),
        ("job_class", False, ["j2", "j0", "j3", "j1"]),
        ("queue", True, ["j0", "j3", "j2", "j1"]),
        ("error_class", False, ["j3", "j2", "j1", "j0"]),
        ("wait", True, ["j0", "j3", "j2", "j1"]),
    ],
)
def test_the_newest_runs_are_ranked(redis_client, by, descending, found):
    """Of equals the newest comes first, what has no such value last."""
    keep(redis_client, "success", "j0", 1000, seconds=1, wait=5, queue="z", **{"class": "B.B"})
    keep(redis_client, "failed", "j1", 1001, seconds=None, attempt=3, **{"class": "c.C"})
    keep(redis_client, "success", "j2", 1002, seconds=2, **{"class": "a.a"})
    error = {"error_class": "OSError", "class": "b.c"}
    keep(redis_client, "failed", "j3", 1003, seconds=9, attempt=2, **error)
    ranking = History().ranked(by, descending=descending)
    assert [each.jid for each in ranking.entries] == found
    assert (ranking.whole, ranking.looked_at, ranking.total) == (True, 4, 4)


def test_a_ranking_says_how_far_it_reaches(redis_client):
    runs = {
        json.dumps({"jid": f"j{at}", **RUN, "seconds": at}, separators=(",", ":")): 9_000 - at
        for at in range(1_200)
    }
    redis_client.zadd("cogworker:history:success", runs)
    ranking = History().ranked("seconds", budget=60)
    assert [each.jid for each in ranking.entries][:2] == ["j1199", "j1198"]
    assert (len(ranking.entries), ranking.whole, ranking.total) == (1_000, True, 1_200)
    assert (ranking.matched, ranking.ranked, ranking.back_to) == (1_200, 1_000, None)
    part = History().ranked("seconds", offset=998, limit=5, budget=60)
    assert [each.jid for each in part.entries] == ["j201", "j200"]
    assert (part.matched, part.ranked) == (1_200, 1_000)
    newest = History().ranked("seconds", budget=0)
    assert [each.jid for each in newest.entries][:2] == ["j499", "j498"]
    assert (newest.whole, newest.looked_at, newest.back_to) == (False, 500, 9_000 - 499)
    # All of a span of time is in order, also where all that is kept cannot be.
    span = History().ranked("seconds", since=8_000, until=8_100, budget=0)
    assert [each.jid for each in span.entries][:2] == ["j1000", "j999"]
    assert (span.whole, span.matched, span.total) == (True, 101, 101)
    some = History().ranked("seconds", jid="j1100", budget=0)
    assert (some.entries, some.whole, some.looked_at) == ([], False, 500)
    found = History().ranked("seconds", jid="j1100", budget=60)
    assert ([each.jid for each in found.entries], found.whole) == (["j1100"], True)
    with pytest.raises(InvalidQuery, match="'seconds'"):
        History().ranked("traceback")  # type: ignore[arg-type]


def test_a_span_of_time_is_counted_and_gone_through_part_by_part(redis_client):
    for at in range(40):
        keep(redis_client, "failed" if at % 3 == 0 else "success", f"j{at}", 1000 + at)
    with counted() as trips:
        page = History().search(since=1005, until=1030, limit=10)
    assert (trips.number, page.total, page.entries[0].jid) == (1, 26, "j30")
    assert walk(since=1005, until=1030, limit=10)[0] == [f"j{at}" for at in range(30, 4, -1)]
    # A cursor from elsewhere begins the span anew.
    assert History().search(since=1005, until=1030, cursor="5.0~0~0").entries[0].jid == "j30"
    odds: tuple[Any, ...] = ("x", True, datetime(2026, 11, 30))
    for odd in odds:
        with pytest.raises(InvalidQuery, match="since"):
            History().search(since=odd)


def test_the_rarer_kind_is_not_read_again_and_again(redis_client):
    """Failures are few and large: their records are read once, however many chunks of successes there are."""
    for kind, many, step in (("success", 3_000, 1), ("failed", 300, 10)):
        runs = {
            json.dumps({"jid": f"{kind}-{at}", **RUN, "args": ["x" * 50]}, separators=(",", ":")): (
                9_000 - step * at
            )
            for at in range(many)
        }
        redis_client.zadd(f"cogworker:history:{kind}", runs)
    with counted() as trips:
        found = History().search(text="nothing", budget=60)
    assert (found.looked_at, found.cursor) == (3_300, None)
    assert b"".join(trips.sent).count(b"history:failed") == 2  # and once for how many there are
    assert trips.number == 3


@pytest.mark.parametrize("cursor", ["x", "1~2", "nan~0~0", "1~-1~0", "1~0~0~0"])
def test_a_cursor_that_is_none_is_refused(redis_client, cursor):
    with pytest.raises(InvalidQuery, match="cursor"):
        History().search(cursor=cursor)
