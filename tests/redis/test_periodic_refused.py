"""Slots of entries with a lock whose push brings no job: nothing of them may stay."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_cogworker.features.periodic import entries
from django_cogworker.features.periodic.entry import Entry
from django_cogworker.features.periodic.records import Records
from django_cogworker.features.periodic.ticker import Ticker
from django_cogworker.store.store import get_store
from tests.project.jobs import Slot

LOCKED = {"job": "tests.project.jobs.Slot", "cron": "0 * * * *", "unique_run": True}


@pytest.fixture
def client(redis_client: Any, redis_url: str) -> Any:
    return redis_client


def entry_of(settings: Any, **more: Any) -> Entry:
    settings.COGWORKER_PERIODIC = {"a": {**LOCKED, **more}}
    return entries.find("a")


def missed(entry: Entry) -> tuple[int, int]:
    """As if the last slot that became a job lay one back; that one, and the one that is due."""
    before, due = entry.cron.newest(time.time(), limit=2)
    get_store().client.set(Records().last(entry), before, ex=1000)
    return before, due


def last(entry: Entry, client: Any) -> int | None:
    found = client.get(Records().last(entry))
    return None if found is None else int(found)


@pytest.fixture(params=["wrong type", "no permission"])
def heal(request: pytest.FixtureRequest, client: Any) -> Iterator[Callable[[], None]]:
    """No job can be written to its queue, until this is called: known beforehand, or only when all is claimed."""
    key = get_store().keys.queue("default").jobs

    def heal() -> None:
        client.execute_command("ACL", "SETUSER", "default", "+lpush")
        if client.type(key) == b"string":
            client.delete(key)

    if request.param == "wrong type":
        client.set(key, "no list")
    else:
        client.execute_command("ACL", "SETUSER", "default", "-lpush")
    yield heal
    heal()


def test_m182_m186_a_push_that_cannot_be_written_takes_no_lock_and_the_next_look_fires(
    settings, client, heal
):
    """M182, M186, M188"""
    entry = entry_of(settings)
    before, due = missed(entry)
    Ticker().tick()
    assert not client.exists(Records().running("a"))
    assert last(entry, client) == before
    heal()
    Ticker().tick()
    (raw,) = client.lrange(get_store().keys.queue("default").jobs, 0, -1)
    job = json.loads(raw)
    assert job["slot"] == last(entry, client) == due
    assert client.get(Records().running("a")).decode() == job["jid"]


@pytest.mark.usefixtures("heal")
def test_m188_where_there_was_no_last_slot_there_is_none_after_a_push_that_failed(settings, client):
    """M188"""
    entry = entry_of(settings, run_at_first_start=True)
    Ticker().tick()
    assert last(entry, client) is None
    assert not client.exists(Records().running("a"))


def test_m182_a_slot_whose_job_is_a_duplicate_takes_no_lock(settings, client):
    """M182"""
    entry = entry_of(settings, unique="until_executed")
    jid = Slot.set(unique="until_executed").perform_async()
    before, due = missed(entry)
    Ticker().tick()
    assert not client.exists(Records().running("a"))
    assert last(entry, client) == before, "it waits a while for its turn"
    key = get_store().keys.queue("default").jobs
    assert [json.loads(each)["jid"] for each in client.lrange(key, 0, -1)] == [jid]
    client.delete(key)
    for lock in client.scan_iter("cogworker:unique:lock:*"):
        client.delete(lock)
    Ticker().tick()
    assert last(entry, client) == due
    assert client.exists(Records().running("a"))
