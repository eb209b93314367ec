"""Slots become jobs: claims, missed slots, locks, what is written down, and the means to steer."""

from __future__ import annotations

import json
import logging
import time
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
from django_cogworker.features.periodic.records import Records
from django_cogworker.features.periodic.ticker import Ticker
from django_cogworker.store.store import get_store
from tests.project.jobs import Slot
from tests.redis.slots import (
    HOURLY,
    LOCKED,
    SLOT,
    commands_of_a_quiet_time,
    jobs,
    last,
    missed,
    newest,
    slots,
)


@pytest.fixture
def client(redis_client: Any) -> Any:
    return redis_client


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
        line = {"slot": number, "skipped": "so"}
        assert Records().raise_to(entry, int(time.time()) + number, time.time(), (line,))
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


def test_between_two_slots_nothing_is_asked(given):
    given(a=HOURLY)
    ticker = Ticker()
    ticker.tick()
    assert commands_of_a_quiet_time(ticker) == 0


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
