"""Slots that nobody saw in time: what becomes of them, and what the ledger says of those left out."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest

from django_cogworker import client as front
from django_cogworker.api import PeriodicSet
from django_cogworker.features.periodic.cron import Cron
from django_cogworker.features.periodic.missed import COUNTED
from django_cogworker.features.periodic.records import Records
from django_cogworker.features.periodic.ticker import Ticker
from django_cogworker.store.store import get_store
from tests.redis.slots import (
    HOURLY,
    SLOT,
    commands_of_a_quiet_time,
    jobs,
    last,
    missed,
    slots,
)


@pytest.fixture
def client(redis_client: Any) -> Any:
    return redis_client


def ledger() -> list[dict[str, Any]]:
    """Of entry `a`, the newest first."""
    return PeriodicSet()["a"].ledger()


def test_of_many_missed_slots_the_newest_becomes_a_job(given):
    """Q2-6 SK-6: and one line says how many were left out, and from when to when."""
    entry = given(a=HOURLY)
    expected = missed(entry, 30)
    for ticker in (Ticker(), Ticker()):
        ticker.tick()
    assert slots() == expected[-1:]
    assert last(entry) == expected[-1]
    ran, others = ledger()
    assert (ran["slot"], ran["outcome"]) == (expected[-1], "enqueued")
    assert (others["first"], others["slot"], others["count"]) == (expected[0], expected[-2], 29)
    assert "'once'" in others["skipped"]
    assert "or_more" not in others


def test_a_few_missed_slots_have_a_line_each(given):
    entry = given(a=HOURLY)
    expected = missed(entry, 4)
    for ticker in (Ticker(), Ticker()):
        ticker.tick()
    found = ledger()
    assert [each["slot"] for each in found] == expected[::-1]
    assert [each.get("jid") for each in found] == [jobs()[0]["jid"], None, None, None]
    assert all("'once'" in each["skipped"] and each["at"] for each in found[1:])


def test_missed_slots_can_all_become_jobs_up_to_a_limit(given):
    """Q2-6"""
    entry = given(a={**HOURLY, "catch_up": "all", "limit": 4})
    expected = missed(entry, 30)
    Ticker().tick()
    Ticker().tick()
    assert slots() == expected[-4:]
    *ran, others = ledger()
    assert [each["slot"] for each in ran] == expected[:-5:-1]
    assert (others["first"], others["slot"], others["count"]) == (expected[0], expected[-5], 26)
    assert "limit" in others["skipped"]


def test_missed_slots_can_be_skipped_and_the_ledger_says_so(given):
    """Q2-6"""
    entry = given(a={"job": SLOT, "cron": "0 0 1 1 *", "catch_up": "skip"})
    expected = missed(entry, 2)
    Ticker().tick()
    Ticker().tick()
    assert jobs() == []
    assert last(entry) == expected[-1]
    found = ledger()
    assert [each["slot"] for each in found] == expected[::-1]
    assert all("'skip'" in each["skipped"] for each in found)


def test_nobody_walks_through_all_slots_of_a_long_outage(given, client, monkeypatch):
    """A year of seconds: one line, some thousand slots looked at."""
    entry = given(a={"job": SLOT, "cron": "* * * * * *"})
    begin = int(time.time()) - 365 * 86_400
    client.set(Records().last(entry), begin)
    seen = []
    real = Cron.slots

    def counted(cron: Cron, after: float) -> Iterator[int]:
        for slot in real(cron, after):
            seen.append(slot)
            yield slot

    monkeypatch.setattr(Cron, "slots", counted)
    Ticker().tick()
    assert len(seen) < 5 * COUNTED
    *ran, others = ledger()
    assert len(ran) <= 11, "those that are at most ten seconds late"
    assert others["first"] == begin + 1
    assert others["slot"] == ran[-1]["slot"] - 1
    assert (others["count"], others["or_more"]) == (COUNTED, True)


def test_a_worker_that_has_just_started_leaves_out_no_slot_of_the_last_seconds(given, client):
    """Another worker may be about to claim it, and be a moment late."""
    entry = given(a={"job": SLOT, "cron": "* * * * * *", "catch_up": "skip"})
    begin = int(time.time()) - 4
    client.set(Records().last(entry), begin)
    Ticker().tick()
    assert slots()[:4] == [begin + 1, begin + 2, begin + 3, begin + 4]


def test_what_a_refused_push_would_have_written_is_not_there(given, client):
    """The lines go with the job of the slot, so they are there once or not at all."""
    store = get_store()
    entry = given(a={**HOURLY, "queue": "spoilt"})
    missed(entry, 3)
    client.set(store.keys.queue("spoilt").jobs, "no list")
    ticker = Ticker()
    ticker.tick()
    assert ledger() == []
    client.delete(store.keys.queue("spoilt").jobs)
    ticker._state(entry).rest_until = 0.0
    ticker.tick()
    assert [bool(each.get("jid")) for each in ledger()] == [True, False, False]


def test_a_slot_that_cannot_be_pushed_stays_due_whatever_catch_up_says(
    given, redis_time, monkeypatch
):
    """M186: until the next one comes."""
    entry = given(a={**HOURLY, "catch_up": "skip"})
    ticker = Ticker()
    ticker.tick()
    slot = entry.cron.next_after(time.time())
    with monkeypatch.context() as patch:
        patch.setattr(front, "enqueue", lambda *args, **kwargs: 1 / 0)
        for seconds in (0, 6, 18, 40):
            redis_time.move_to(slot + seconds, ticker)
            ticker._state(entry).rest_until = 0.0
            ticker.tick()
    redis_time.move_to(slot + 82, ticker)
    ticker._state(entry).rest_until = 0.0
    ticker.tick()
    assert slots() == [slot]


def test_an_entry_that_failed_for_long_has_no_backlog(given, redis_time, monkeypatch):
    """When the fault is mended the newest slot becomes a job; the ledger names the others."""
    entry = given(a={"job": SLOT, "cron": "* * * * *"})
    ticker = Ticker()
    ticker.tick()
    slot = entry.cron.next_after(time.time())
    with monkeypatch.context() as patch:
        patch.setattr(front, "enqueue", lambda *args, **kwargs: 1 / 0)
        for seconds in (0, 6, 18, 40, 82, 164):
            redis_time.move_to(slot + seconds, ticker)
            ticker._state(entry).rest_until = 0.0
            ticker.tick()
    redis_time.move_to(slot + 186, ticker)
    ticker._state(entry).rest_until = 0.0
    ticker.tick()
    assert slots() == [slot + 180]
    assert [each["slot"] for each in ledger()] == [slot + 180, slot + 120, slot + 60, slot]


def test_slots_of_a_disabled_entry_are_told_when_it_is_enabled(given):
    """M193"""
    entry = given(a=HOURLY)
    expected = missed(entry, 3)
    handle = PeriodicSet()["a"]
    handle.disable()
    Ticker().tick()
    handle.enable()
    Ticker().tick()
    assert slots() == expected[-1:]
    found = ledger()
    assert [each["slot"] for each in found] == expected[::-1]
    assert [each.get("skipped") for each in found[1:]] == ["the entry was disabled"] * 2


def test_an_entry_that_was_disabled_before_anybody_saw_it_is_new_when_it_is_enabled(given):
    given(a=HOURLY)
    handle = PeriodicSet()["a"]
    handle.disable()
    Ticker().tick()
    handle.enable()
    Ticker().tick()
    assert jobs() == []


def test_a_disabled_entry_is_asked_for_no_more_than_others(given):
    given(a=HOURLY)
    PeriodicSet()["a"].disable()
    ticker = Ticker()
    ticker.tick()
    assert commands_of_a_quiet_time(ticker) == 0


# -- Redis's own clock


@pytest.mark.parametrize("seconds", [600, -600])
def test_a_jump_of_the_clock_of_redis_doubles_no_slot(given, redis_time, seconds):
    """HU-8: forwards the slots between count as missed; backwards it waits until the time is there again."""
    entry = given(a={"job": SLOT, "cron": "* * * * *"})
    tickers = [Ticker(), Ticker()]
    for each in tickers:
        each.tick()

    def minutes(count: int) -> None:
        for _ in range(count):
            redis_time.move_to(redis_time.now() + 30, *tickers)
            for each in tickers:
                each.tick()

    minutes(4)
    before = slots()
    assert len(before) >= 1
    redis_time.move_to(redis_time.now() + seconds, *tickers)
    for each in tickers:
        each.tick()
    minutes(4 if seconds > 0 else 26)
    found = slots()
    assert len(found) == len(set(found))
    assert found == sorted(found)
    gap = [later - earlier for earlier, later in itertools.pairwise(found)]
    assert sorted(gap)[:-1] == [60] * (len(gap) - 1)
    assert gap == [60] * len(gap) or seconds > 0
    assert len(found) > len(before)
    assert last(entry) == found[-1]
