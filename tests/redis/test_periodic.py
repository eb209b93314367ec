"""Slots become jobs: claims, missed slots, locks, what is written down, and the means to steer."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
import redis
from django.core.management import CommandError, call_command

from django_cogworker.api import PeriodicSet
from django_cogworker.exceptions import UnknownPeriodicEntry
from django_cogworker.features.base import Run
from django_cogworker.features.periodic import entries
from django_cogworker.features.periodic.feature import Periodic
from django_cogworker.features.periodic.records import LOCK_TTL, Records
from django_cogworker.features.periodic.ticker import Ticker
from django_cogworker.store.store import get_store
from tests.project.jobs import Slot

SLOT = "tests.project.jobs.Slot"
HOURLY = {"job": SLOT, "cron": "0 * * * *"}


@pytest.fixture
def client(redis_client: Any) -> Any:
    return redis_client


@pytest.fixture
def given(redis_url: str, settings: Any) -> Callable[..., Any]:
    """Sets the entries; returns the one of a name."""

    def give(**found: Any) -> Any:
        settings.COGWORKER_PERIODIC = found
        return entries.find(next(iter(found)))

    return give


def jobs() -> list[dict[str, Any]]:
    """What waits on the default queue, the oldest first."""
    store = get_store()
    client: Any = store.client
    return [
        json.loads(each)
        for each in reversed(client.lrange(store.keys.queue("default").jobs, 0, -1))
    ]


def slots() -> list[int]:
    return [each["slot"] for each in jobs()]


def newest(entry: Any, count: int = 1) -> list[int]:
    return entry.cron.newest(time.time(), limit=count)


def missed(entry: Any, count: int = 1) -> list[int]:
    """As if the last slot that became a job lay so many slots back; those since then."""
    found = newest(entry, count + 1)
    get_store().client.set(Records().last(entry), found[0], ex=1000)
    return found[1:]


def last(entry: Any) -> int:
    return int(Records().client.get(Records().last(entry)))


# -- new and missed


def test_a_new_entry_is_primed_and_fires_for_no_past_slot(given, client):
    """M198"""
    entry = given(a=HOURLY)
    for ticker in (Ticker(), Ticker()):
        ticker.tick()
        ticker.tick()
    assert jobs() == []
    assert last(entry) == newest(entry)[0]
    assert client.ttl(Records().last(entry)) > 399 * 86_400


def test_a_new_entry_may_ask_for_its_first_run(given):
    entry = given(a={**HOURLY, "run_at_first_start": True})
    Ticker().tick()
    Ticker().tick()
    assert slots() == newest(entry)


def test_a_slot_becomes_one_job_whoever_looks(given):
    """M196 CE-9 TQ-6"""
    entry = given(a=HOURLY)
    expected = missed(entry)
    tickers = [Ticker(), Ticker()]
    for ticker in [*tickers, *tickers]:
        ticker.tick()
    assert slots() == expected


def test_two_that_have_read_the_same_push_one_job(given, monkeypatch):
    """The claim is in the push: what both have read before does not matter."""
    entry = given(a=HOURLY)
    expected = missed(entry)
    second, before = Ticker(), last(entry)
    look = second._look
    second._read(Records(), entries.all_entries())
    Ticker().tick()
    assert second._state(entry).last == before
    look(Records(), entry, second._state(entry))
    assert slots() == expected


def test_of_many_missed_slots_the_newest_becomes_a_job(given):
    """Q2-6 SK-6"""
    entry = given(a=HOURLY)
    expected = missed(entry, 30)
    Ticker().tick()
    assert slots() == expected[-1:]
    assert last(entry) == expected[-1]


def test_missed_slots_can_all_become_jobs_up_to_a_limit(given):
    """Q2-6"""
    entry = given(a={**HOURLY, "catch_up": "all", "limit": 4})
    expected = missed(entry, 30)
    Ticker().tick()
    Ticker().tick()
    assert slots() == expected[-4:]


def test_missed_slots_can_be_skipped_and_the_ledger_says_so(given):
    """Q2-6"""
    entry = given(a={"job": SLOT, "cron": "0 0 1 1 *", "catch_up": "skip"})
    expected = missed(entry, 2)
    Ticker().tick()
    Ticker().tick()
    assert jobs() == []
    (line,) = PeriodicSet()["a"].ledger()
    assert line["slot"] == expected[-1]
    assert "catch_up" in line["skipped"]


def test_a_changed_cron_line_begins_anew(given):
    """An entry whose line was changed, also back again, fires for no past slot."""
    entry = given(a={"job": SLOT, "cron": "0 0 * * *"})
    Ticker().tick()
    missed(entry)
    given(a=HOURLY)
    Ticker().tick()
    entry = given(a={"job": SLOT, "cron": "0 0 * * *"})
    Ticker().tick()
    assert jobs() == []
    assert last(entry) == newest(entry)[0]


def test_an_entry_obeys_the_options_of_its_job_and_its_own(given):
    """12.3-1"""
    entry = given(a={**HOURLY, "retry": False, "priority": 0})
    missed(entry)
    Ticker().tick()
    (job,) = jobs()
    assert (job["retry"], job["tags"], job["periodic"]) == (False, ["slots"], "a")


# -- trouble


def test_a_push_that_cannot_be_written_leaves_the_slot_to_the_next_look(given, client, caplog):
    """12.1-4 M186 M188 M192"""
    store = get_store()
    entry = given(a={**HOURLY, "queue": "spoilt"}, b=HOURLY)
    missed(entry)
    expected = missed(entries.find("b"))
    client.set(store.keys.queue("spoilt").jobs, "no list")
    before, ticker = last(entry), Ticker()
    ticker.tick()
    assert last(entry) == before, "the guard was put back by the script"
    assert slots() == expected, "the other entry runs"
    assert "cannot be enqueued" in caplog.text
    client.delete(store.keys.queue("spoilt").jobs)
    ticker._state(entry).rest_until = 0.0
    ticker.tick()
    assert client.llen(store.keys.queue("spoilt").jobs) == 1


def test_keys_of_the_wrong_type_stop_no_other_entry(given, client, caplog):
    """M190 M192 M194"""
    given(a=HOURLY, b=HOURLY)
    expected = missed(entries.find("b"))
    records = Records()
    client.lpush(records.last(entries.find("a")), "x")
    client.set(records.disabled, "x")
    client.set(records.entries, "x")
    Ticker().tick()
    assert slots() == expected
    assert "disabled is unknown" in caplog.text


def test_an_entry_that_cannot_be_used_is_left_out_and_logged(given, caplog):
    """M192"""
    entry = given(b=HOURLY, a={"job": "shop.jobs.Gone", "cron": "0 * * * *"})
    expected = missed(entry)
    Ticker().tick()
    assert slots() == expected
    assert "shop.jobs.Gone" in caplog.text


# -- unique_run


LOCKED = {**HOURLY, "unique_run": True}


@pytest.fixture
def fired(given: Any) -> tuple[Any, dict[str, Any], str]:
    """An entry with a lock, its job, and the key of the lock."""
    entry = given(a=LOCKED)
    missed(entry)
    Ticker().tick()
    return entry, jobs()[0], Records().running("a")


def test_a_run_is_locked_from_its_push_on(fired, client):
    """M180 M184"""
    _, job, lock = fired
    assert client.get(lock).decode() == job["jid"]
    assert 0 < client.ttl(lock) <= LOCK_TTL


@pytest.mark.parametrize(
    ("outcome", "delay", "kept"),
    [
        ("finished", 0, False),
        ("dead", 0, False),
        ("killed", 0, False),
        ("discarded", 0, False),
        ("expired", 0, False),
        ("retrying", 500, True),
        ("waiting", 30, True),
    ],
)
def test_the_lock_is_freed_by_the_end_and_kept_by_a_retry(fired, client, outcome, delay, kept):
    """M181 M205"""
    _, job, lock = fired
    client.expire(lock, 5)
    get_store().apply(Periodic().settled(Run(job, outcome, delay=delay)))
    assert bool(client.exists(lock)) == kept
    if kept:
        assert client.ttl(lock) > LOCK_TTL + delay - 5
    assert PeriodicSet()["a"].ledger()[0]["outcome"] == outcome


def test_who_brings_the_job_back_takes_the_lock_again(fired, client):
    """12.1-3"""
    _, job, lock = fired
    feature = Periodic()
    for effects in (
        feature.requeued(job),
        feature.recovered(job, "front"),
        feature.recovered(job, "schedule"),
        feature.graduated(job),
    ):
        client.delete(lock)
        get_store().apply(effects)
        assert client.get(lock).decode() == job["jid"]
        client.set(lock, "newer", ex=50)
        get_store().apply(effects)
        assert client.get(lock) == b"newer", "unless a newer run has it"
    client.set(lock, job["jid"], ex=50)
    get_store().apply(feature.removed(job))
    assert not client.exists(lock)
    client.set(lock, job["jid"], ex=50)
    get_store().apply(feature.recovered(job, "dead"))
    assert not client.exists(lock)


def test_a_blocked_slot_waits_for_the_lock_and_is_skipped_after_15_s(given, client):
    """M201"""
    entry = given(a=LOCKED)
    expected = missed(entry)
    lock = Records().running("a")
    client.set(lock, "other", ex=100)
    ticker = Ticker()
    ticker.tick()
    ticker.tick()
    assert jobs() == []
    assert last(entry) < expected[0]
    client.delete(lock)
    ticker.tick()
    assert slots() == expected

    expected = missed(entry)
    client.set(lock, "other", ex=100)
    ticker = Ticker()
    ticker.tick()
    assert last(entry) < expected[0]
    ticker._state(entry).blocked = (expected[0], time.time() - 20)
    ticker.tick()
    assert last(entry) == expected[0]
    assert len(jobs()) == 1
    assert "had not ended" in PeriodicSet()["a"].ledger()[0]["skipped"]


def test_a_job_of_no_entry_has_no_effects():
    """M204"""
    feature, job = Periodic(), {"jid": "a", "class": SLOT, "args": []}
    assert feature.settled(Run(job, "finished")) == ()
    assert feature.requeued(job) == feature.removed(job) == feature.graduated(job) == ()
    assert feature.pushed({**job, "periodic": "a", "slot": 1}) is None, "not by a tick"


# -- looking and steering


def test_the_ledger_has_the_last_fifty_slots(given, client):
    entry = given(a=HOURLY)
    for _ in range(3):
        missed(entry)
        Ticker().tick()
    found = PeriodicSet()["a"].ledger()
    assert [each["outcome"] for each in found] == ["enqueued"] * 3
    assert found[0]["jid"] == jobs()[-1]["jid"]
    for number in range(60):
        Records().raise_to(entry, 10**10 + number, {"slot": number, "skipped": "so"})
    assert client.llen(Records().ledger("a")) == 50
    assert client.ttl(Records().ledger("a")) > 0


def test_the_entries_are_published_and_those_that_went_vanish(given, client):
    """M197 M208"""
    given(a=LOCKED, b=HOURLY)
    Ticker().tick()
    found = PeriodicSet().published()
    assert set(found) == {"a", "b"}
    assert (found["a"]["class"], found["a"]["unique_run"]) == (SLOT, True)
    given(b=HOURLY)
    Ticker().tick()
    assert set(PeriodicSet().published()) == {"b"}


def test_a_disabled_entry_rests_and_fires_its_current_slot_when_enabled(given, client):
    """M193"""
    entry = given(a={**LOCKED, "catch_up": "all"})
    expected, before = missed(entry, 5), last(entry)
    handle = PeriodicSet()["a"]
    assert handle.disable()
    assert not handle.disable()
    ticker = Ticker()
    ticker.tick()
    assert jobs() == []
    assert last(entry) == before
    assert not client.exists(Records().running("a"))
    assert handle.enable()
    assert not handle.enable()
    Ticker().tick()
    assert slots() == expected[-1:]


def test_run_now_is_an_ordinary_job_also_of_a_disabled_entry(given):
    entry = given(a=LOCKED)
    Ticker().tick()
    before, handle = last(entry), PeriodicSet()["a"]
    handle.disable()
    jid = handle.run_now()
    (job,) = jobs()
    assert job["jid"] == jid
    assert "slot" not in job
    assert last(entry) == before


def command(*args: str) -> str:
    out = StringIO()
    call_command("cogworker", *args, stdout=out)
    return out.getvalue()


def test_the_command_lists_and_steers(given):
    given(a={**HOURLY, "tz": "Europe/Paris"})
    rows = json.loads(command("periodic", "--json", "--next", "3"))
    assert rows[0]["name"] == "a"
    assert len(rows[0]["next"]) == 3
    assert "Europe/Paris" in command("periodic")
    assert command("periodic-disable", "a") == "Disabled.\n"
    assert json.loads(command("periodic", "--json"))[0]["enabled"] is False
    assert command("periodic-enable", "a") == "Enabled.\n"
    assert "Enqueued as" in command("periodic-run", "a")
    assert len(jobs()) == 1
    with pytest.raises(CommandError, match="Known: a"):
        command("periodic-run", "b")
    with pytest.raises(UnknownPeriodicEntry):
        PeriodicSet()["b"]


def test_between_two_slots_nothing_is_asked(given, client):
    given(a=HOURLY)
    ticker = Ticker()
    ticker.tick()
    before = client.info("stats")["total_commands_processed"]
    for _ in range(20):
        ticker.tick()
    assert client.info("stats")["total_commands_processed"] - before == 1


def test_every_key_has_an_end_or_a_bound(given, client):
    entry = given(a=LOCKED)
    missed(entry)
    Ticker().tick()
    get_store().apply(Periodic().settled(Run(jobs()[0], "retrying", delay=5)))
    PeriodicSet()["a"].disable()
    keys = {each.decode() for each in client.keys("cogworker:periodic:*")}
    endless = {each for each in keys if client.ttl(each) == -1}
    assert len(keys) == 6
    assert endless == {"cogworker:periodic:entries", "cogworker:periodic:disabled"}


def test_an_outage_is_no_fault_of_an_entry(given, caplog, monkeypatch):
    """M200"""
    entry = given(a=HOURLY)
    missed(entry)
    ticker = Ticker()
    with monkeypatch.context() as patch:
        patch.setattr(
            "django_cogworker.store.store.Store.push",
            lambda *args: (_ for _ in ()).throw(redis.ReadOnlyError("READONLY")),
        )
        patch.setattr("django_cogworker.client.transport.PATIENCE", 0.0)
        ticker.tick()
    assert ticker._state(entry).pause == 0
    ticker.tick()
    assert len(jobs()) == 1
    assert [each for each in caplog.records if each.levelno >= logging.CRITICAL] == []
    assert Slot.job_name == SLOT
