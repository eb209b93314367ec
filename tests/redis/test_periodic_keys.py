"""Keys of periodic entries that others wrote to: the entry goes on, and says what happened."""

from __future__ import annotations

import time
from typing import Any

import pytest

from django_cogworker.api import PeriodicSet
from django_cogworker.features.periodic.feature import Periodic
from django_cogworker.features.periodic.records import AHEAD, Records
from django_cogworker.features.periodic.ticker import Ticker
from django_cogworker.store.store import get_store
from tests.redis.slots import (
    HOURLY,
    LOCKED,
    SLOT,
    jobs,
    last,
    missed,
    newest,
    slots,
)


@pytest.fixture
def client(redis_client: Any) -> Any:
    return redis_client


def ledger() -> list[dict[str, Any]]:
    """Of entry `a`, the newest first."""
    return PeriodicSet()["a"].ledger()


def wrong_type(client: Any, key: str) -> None:
    client.rpush(key, "x", "y")


def junk(client: Any, key: str) -> None:
    client.set(key, "yesterday")


def far_ahead(client: Any, key: str) -> None:
    client.set(key, int(time.time()) + 2 * AHEAD)


def beyond_all_dates(client: Any, key: str) -> None:
    client.set(key, "9" * 14)


def not_ascii(client: Any, key: str) -> None:
    client.set(key, b"\xff\xfe")


SPOIL = [wrong_type, junk, far_ahead, beyond_all_dates, not_ascii]


@pytest.mark.parametrize("spoil", SPOIL)
def test_an_entry_whose_last_slot_is_none_begins_anew(given, client, caplog, redis_time, spoil):
    """M190 L178: it fires for no past slot, tells it to log and ledger, and runs at its next slot."""
    entry = given(a={**HOURLY, "run_at_first_start": True}, b=HOURLY)
    other = missed(PeriodicSet()["b"].entry)
    spoil(client, Records().last(entry))
    tickers = [Ticker(), Ticker()]
    for each in tickers:
        each.tick()
    assert [(each["periodic"], each["slot"]) for each in jobs()] == [("b", other[0])]
    assert last(entry) == newest(entry)[0]
    (line,) = ledger()
    assert "begins anew" in line["skipped"]
    assert caplog.text.count("begins anew after slot") == 1
    copies = list(client.scan_iter("cogworker:quarantine:*"))
    assert [client.lrange(each, 0, -1) for each in copies] == (
        [[b"x", b"y"]] if spoil is wrong_type else []
    )
    slot = entry.cron.next_after(time.time())
    redis_time.move_to(slot, *tickers)
    for each in tickers:
        each.tick()
    assert slots().count(slot) == 2, "both entries, one job each"


@pytest.mark.parametrize("spoil", SPOIL)
def test_such_an_entry_can_be_disabled_and_enabled(given, client, spoil):
    entry = given(a=HOURLY)
    spoil(client, Records().last(entry))
    handle = PeriodicSet()["a"]
    handle.disable()
    Ticker().tick()
    assert handle.enable()
    Ticker().tick()
    assert jobs() == []
    assert last(entry) == newest(entry)[0]


def test_keys_of_the_wrong_type_are_put_away_by_the_key_guard(given, client):
    """L178: those beside the last slot."""
    given(a=LOCKED, b=HOURLY)
    records = Records()
    for each in (records.running("a"), records.ledger("a"), records.outcomes("b")):
        client.sadd(each, "wrong")
    client.set(records.entries, "wrong")
    client.set(records.disabled, "wrong")
    found = get_store().quarantine.look([], "host:1:a", "h", Periodic().known_keys())
    assert {each.key for each in found} == {
        records.running("a"),
        records.ledger("a"),
        records.outcomes("b"),
        records.entries,
        records.disabled,
    }
    for misplaced in found:
        get_store().quarantine.put_away(misplaced)
    Ticker().tick()
    assert get_store().quarantine.look([], "host:1:a", "h", Periodic().known_keys()) == []
    assert set(PeriodicSet().published()) == {"a", "b"}


def test_junk_in_the_ledger_hides_nothing_else(given, client):
    entry = given(a=HOURLY)
    missed(entry)
    Ticker().tick()
    client.rpush(Records().ledger("a"), "{", "3", b"\xff")
    client.rpush(Records().outcomes("a"), "x", "")
    (line,) = ledger()
    assert line["outcome"] == "enqueued"
    client.delete(Records().outcomes("a"))
    client.set(Records().outcomes("a"), "wrong")
    assert [each["outcome"] for each in ledger()] == ["enqueued"]


def test_a_seldom_entry_is_not_forgotten(given, client):
    """Its last slot lives for 400 days; each start of a worker renews that."""
    entry = given(a={"job": SLOT, "cron": "0 0 29 2 *", "run_at_first_start": True})
    Ticker().tick()
    client.expire(Records().last(entry), 60)
    Ticker().tick()
    assert client.ttl(Records().last(entry)) > 399 * 86_400
    assert len(jobs()) == 1
