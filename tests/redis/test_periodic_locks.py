"""The lock of an entry with `unique_run`: claimed, shortened, extended, freed; and slots that it blocks."""

from __future__ import annotations

import time
from typing import Any

import pytest
import redis

from django_cogworker.api import PeriodicSet
from django_cogworker.features.base import Run
from django_cogworker.features.periodic import feature as guest
from django_cogworker.features.periodic.feature import PAUSE, Periodic
from django_cogworker.features.periodic.records import Records
from django_cogworker.features.periodic.ticker import Ticker
from django_cogworker.store.store import Store, get_store
from tests.redis.slots import DAY, HOURLY, LOCKED, SLOT, jobs, last, missed, slots

#: Orphan threshold and 120 s.
ACTIVE = 180


@pytest.fixture
def client(redis_client: Any) -> Any:
    return redis_client


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
    assert 0 < client.ttl(lock) <= DAY


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
        assert client.ttl(lock) > DAY + delay - 5
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
    ticker._state(entry).blocked_since = time.time() - 20
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


# -- while it runs


@pytest.fixture
def running(fired: Any) -> Any:
    """As if the job ran in this process."""
    _, job, _ = fired
    with guest._running_lock:
        guest._running[job["jid"]] = job["periodic"]
    yield
    with guest._running_lock:
        guest._running.pop(job["jid"], None)


def test_a_run_that_starts_shortens_its_lock(fired, client):
    """M206"""
    _, job, lock = fired
    assert client.ttl(lock) > ACTIVE
    assert Periodic().admit(job) is None
    assert 0 < client.ttl(lock) <= ACTIVE
    client.set(lock, "newer", ex=5000)
    Periodic().admit(job)
    assert client.ttl(lock) > ACTIVE, "that of another run is left alone"


def test_a_run_starts_though_its_lock_cannot_be_shortened(fired, monkeypatch):
    """M206"""
    _, job, _ = fired

    def refuse(*args: Any) -> None:
        raise redis.ConnectionError("away")

    monkeypatch.setattr(Store, "apply", refuse)
    assert Periodic().admit(job) is None


@pytest.mark.usefixtures("running")
def test_each_beat_extends_the_lock_of_a_run_and_takes_none_anew(fired, client):
    """7.4: a lock that is gone was freed, as far as anybody knows."""
    _, _, lock = fired
    feature = Periodic()
    client.expire(lock, 5)
    feature.beat()
    assert ACTIVE - 5 < client.ttl(lock) <= ACTIVE
    client.set(lock, "newer", ex=5)
    feature.beat()
    assert client.ttl(lock) <= 5
    client.delete(lock)
    feature.beat()
    assert not client.exists(lock)


@pytest.mark.usefixtures("running")
def test_the_first_beat_after_an_outage_takes_the_lock_anew_unless_a_newer_run_has_it(
    fired, client
):
    _, job, lock = fired
    feature = Periodic()
    client.delete(lock)
    feature._beaten -= PAUSE + 1
    feature.beat()
    assert client.get(lock).decode() == job["jid"]
    assert 0 < client.ttl(lock) <= ACTIVE
    client.set(lock, "newer", ex=50)
    feature._beaten -= PAUSE + 1
    feature.beat()
    assert client.get(lock) == b"newer"


@pytest.mark.usefixtures("running")
def test_a_beat_leaves_no_short_lock_to_a_job_that_goes_to_its_retry_meanwhile(
    fired, client, monkeypatch
):
    _, job, lock = fired
    real = Store.apply

    def apply(store: Store, effects: Any) -> Any:
        with guest._running_lock:
            guest._running.pop(job["jid"], None)
        return real(store, effects)

    monkeypatch.setattr(Store, "apply", apply)
    Periodic().beat()
    assert client.ttl(lock) > ACTIVE


def test_the_life_of_a_waiting_lock_is_a_setting(given, client, settings):
    """M184"""
    settings.COGWORKER_UNIQUE_LOCK_TTL = 999.5
    entry = given(a=LOCKED)
    missed(entry)
    Ticker().tick()
    assert 990 < client.ttl(Records().running("a")) <= 1000
    get_store().apply(Periodic().settled(Run(jobs()[0], "retrying", delay=100)))
    assert 1090 < client.ttl(Records().running("a")) <= 1100


# -- when a lock that is not there means something


def test_no_slot_of_such_an_entry_is_claimed_before_the_fate_of_the_dead_is_known(
    given, redis_time
):
    """12.1-3 G78: the lock of a run that recovery is about to bring back may have ended. Other entries
    do not wait, and a slot that came meanwhile is not late.
    """
    entry = given(a={**LOCKED, "catch_up": "skip"}, b=HOURLY)
    other = missed(PeriodicSet()["b"].entry)
    known: list[bool] = []
    ticker = Ticker()
    ticker.start_anew(lambda: bool(known))
    ticker.tick()
    redis_time.move_to(entry.cron.next_after(time.time()), ticker)
    ticker.tick()
    assert [each["periodic"] for each in jobs()] == ["b", "b"]
    assert slots()[0] == other[0]
    redis_time.move_to(redis_time.now() + 4, ticker)
    ticker.tick()
    redis_time.move_to(redis_time.now() + 4, ticker)
    ticker.tick()
    redis_time.move_to(redis_time.now() + 4, ticker)
    known.append(True)
    ticker.tick()
    assert [each["periodic"] for each in jobs()] == ["b", "b", "a"]


def test_what_nobody_ever_learns_of_the_dead_is_not_waited_for_without_end(given):
    entry = given(a=LOCKED)
    expected = missed(entry)
    ticker = Ticker()
    ticker.start_anew(lambda: False)
    ticker._started_at -= ACTIVE - 5
    ticker.tick()
    assert jobs() == []
    ticker._started_at -= 6
    ticker.tick()
    assert slots() == expected


def test_no_such_slot_is_claimed_right_after_an_outage(given, monkeypatch):
    """7.6: workers whose runs' locks have ended meanwhile take them anew with their next beat."""
    given(a=LOCKED, b=HOURLY)
    for each in PeriodicSet():
        missed(each.entry)
    ticker = Ticker()
    with monkeypatch.context() as patch:
        patch.setattr(
            "django_cogworker.features.periodic.pushing.client.enqueue",
            lambda *args, **kwargs: (_ for _ in ()).throw(redis.ConnectionError("away")),
        )
        ticker.tick()
    ticker.tick()
    assert [each["periodic"] for each in jobs()] == ["b"]
    ticker._trouble_at -= 11
    ticker.tick()
    assert [each["periodic"] for each in jobs()] == ["b", "a"]


def test_a_blocked_slot_is_not_missed(given, client, redis_time):
    """M201: it waits its 15 s, whatever `catch_up` says, and the ledger tells why it did not run."""
    entry = given(a={**LOCKED, "catch_up": "skip"})
    lock = Records().running("a")
    client.set(lock, "other", ex=100)
    ticker = Ticker()
    ticker.tick()
    slot = entry.cron.next_after(time.time())
    for seconds in (0, 4, 8, 12):
        redis_time.move_to(slot + seconds, ticker)
        ticker.tick()
        assert last(entry) < slot
    redis_time.move_to(slot + 16, ticker)
    ticker.tick()
    assert last(entry) == slot
    (line,) = PeriodicSet()["a"].ledger()
    assert (line["slot"], line["skipped"]) == (slot, "the run before it had not ended")


def test_blocked_slots_do_not_pile_up(given, client, redis_time):
    """Each waits 15 s from when it was due, not from when the one before it was given up."""
    entry = given(a={**LOCKED, "cron": "* * * * * *"})
    client.set(Records().running("a"), "other", ex=100)
    ticker = Ticker()
    ticker.tick()
    begin = last(entry)
    for seconds in range(2, 31, 3):
        redis_time.move_to(begin + seconds, ticker)
        ticker.tick()
    assert begin + 13 <= last(entry) <= begin + 17
    assert jobs() == []
