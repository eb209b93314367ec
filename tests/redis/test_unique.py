"""Unique jobs: locks that go with their jobs, on a real Redis, with a worker in this process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from django_cogworker.api import Queue, find_job, release_lock, status, unique_locks
from django_cogworker.client import push, push_bulk
from django_cogworker.exceptions import DuplicateJob
from django_cogworker.features.unique import feature as unique_feature
from django_cogworker.store.store import get_store
from django_cogworker.store.values import Effect, Guard, Outgoing
from tests.project.jobs import Append
from tests.redis.test_basic_mode import working as launched
from tests.support.waiting import wait_until
from tests.uniquejobs.jobs import (
    Alone,
    Executed,
    Executing,
    Fails,
    Latest,
    Unfollowed,
    Waiting,
)

QUEUE = "cogworker:queue:default"
DAY = 86_400


@pytest.fixture
def client(redis_url: str, redis_client: Any, journal: Any) -> Any:
    return redis_client


@pytest.fixture
def working(client: Any, settings: Any) -> Callable[..., Any]:
    def start(concurrency: int = 2) -> Any:
        settings.COGWORKER_CONCURRENCY = concurrency
        return launched()

    return start


def locks(client: Any) -> dict[str, str]:
    """Key of each lock and the jid that has it."""
    names = list(client.scan_iter("cogworker:unique:lock:*"))
    owners = {each.decode().rpartition(":")[2]: client.get(each) for each in names}
    return {key: owner.decode() for key, owner in owners.items() if owner is not None}


def ttl(client: Any) -> float:
    (name,) = client.scan_iter("cogworker:unique:lock:*")
    return float(client.pttl(name) / 1000)


def waiting(client: Any) -> list[str]:
    return [json.loads(each)["jid"] for each in reversed(client.lrange(QUEUE, 0, -1))]


# -- the push


def test_c20_c22_the_same_arguments_are_queued_once_and_others_as_often_as_they_come(client):
    """C20, C22, CE-12"""
    first = Executed.perform_async("a")
    assert first is not None
    assert Executed.perform_async("a") is None
    assert Executed.perform_async(name="a") is None, "however the arguments are given"
    assert Executed.perform_async("a", mark="") is None, "nor does a default make a difference"
    assert Executed.set(queue="low").perform_async("a") is None, "nor does the queue"
    other = Executed.perform_async("b")
    assert set(locks(client).values()) == {first, other}
    assert waiting(client) == [first, other]
    for _ in range(4):
        Append.perform_async("a")
    assert client.llen(QUEUE) == 6


def test_a_bulk_push_has_none_where_a_duplicate_was(client):
    jids = Executed.perform_bulk([("a",), ("b",), ("a",), ("a",)])
    assert [each is None for each in jids] == [False, False, True, True]
    assert Executed.set(on_conflict="raise").perform_bulk([("b",)]) == [None]


def test_a_conflict_raises_where_the_job_says_so_and_names_the_holder(client):
    jid = Executed.perform_async("a")
    with pytest.raises(DuplicateJob, match=str(jid)) as caught:
        Executed.set(on_conflict="raise").perform_async("a")
    assert caught.value.holder == jid
    assert waiting(client) == [jid]


def test_c28_a_ttl_is_rounded_up_and_counts_from_the_moment_when_the_job_is_due(client, settings):
    """C28"""
    settings.COGWORKER_UNIQUE_LOCK_TTL = 99.2
    Executed.perform_in(1000.5, "a")
    assert 1095 < ttl(client) <= 1101
    client.flushall()
    Executed.set(unique_ttl=0.4).perform_async("a")
    assert 0 < ttl(client) <= 1


def test_a_push_that_fails_leaves_no_lock(client):
    """12.3: nothing is pushed, so nothing is locked."""
    client.set("cogworker:queue:broken", "no list")
    with pytest.raises(Exception, match="WRONGTYPE"):
        Executed.set(queue="broken").perform_async("a")
    assert locks(client) == {}


def test_what_counts_as_the_same_can_be_chosen(client):
    one = Executed.set(unique_on=["name"])
    assert one.perform_async("a", "1")
    assert one.perform_async("a", "2") is None
    lower = Executed.set(unique_on=lambda name, mark="": name.lower())
    assert lower.perform_async("X", "1")
    assert lower.perform_async("x", "2") is None
    assert lower.perform_async("y") is not None
    assert all("unique_on" not in json.loads(each) for each in client.lrange(QUEUE, 0, -1))


def test_a_hand_made_payload_can_be_unique_too(client):
    job = {"class": "elsewhere.Job", "args": [1], "unique": True}
    assert push(job)
    assert push(job) is None
    assert push({**job, "args": [2]})
    assert push_bulk([job, {**job, "unique": None}])[0] is None
    assert client.llen(QUEUE) == 3


# -- tracked


def test_a_unique_job_is_tracked_from_its_push_to_its_end(client, working, journal):
    jid = str(Waiting.perform_async("w"))
    found = find_job(jid)
    assert (found.place, found.state, found.looked_at) == ("queue", "queued", 0)
    with working():
        journal.wait_for("started w")
        wait_until(lambda: find_job(jid).state == "working")
        journal.release("w")
        wait_until(lambda: find_job(jid).state == "complete")


def test_a_push_that_is_refused_leaves_no_status(client):
    job = {"class": "elsewhere.Job", "args": [1], "unique": True}
    assert push({**job, "jid": "first"}) == "first"
    assert push({**job, "jid": "second"}) is None
    assert push_bulk([{**job, "jid": "third"}, {**job, "jid": "fourth"}]) == [None, None]
    assert list(client.scan_iter("cogworker:status:*")) == [b"cogworker:status:first"]
    assert status("second") is None


def test_a_unique_job_that_says_so_is_not_tracked(client):
    assert status(str(Unfollowed.perform_async("a"))) is None
    assert status(str(Executed.set(track=False).perform_async("a"))) is None
    assert status(str(Unfollowed.set(track=None).perform_async("b"))) is not None
    assert push({"class": "elsewhere.Job", "jid": "c", "unique": True, "track": False}) == "c"
    assert status("c") is None
    Append.set(track=False).perform_async("d")
    said = [json.loads(each).get("track", "nothing") for each in client.lrange(QUEUE, 0, -1)]
    assert sorted(map(str, said)) == ["True", "nothing", "nothing", "nothing", "nothing"]
    assert len(list(client.scan_iter("cogworker:status:*"))) == 1


def test_a_replaced_job_is_known_as_such(client, working, journal):
    old = str(Latest.perform_async("a", "old"))
    journal.release("anew")
    Latest.perform_async("a", "new")
    with working():
        wait_until(lambda: find_job(old).state == "replaced")


# -- the end


def test_c21_c25_the_lock_is_had_until_the_end_and_no_longer(client, working, journal):
    """C21, C25, AR-11"""
    with working():
        jid = Waiting.perform_async("w")
        journal.wait_for("started w")
        assert Waiting.perform_async("w") is None
        journal.release("w")
        journal.wait_for("finished w")
        wait_until(lambda: not locks(client))
        assert Waiting.perform_async("w") not in (None, jid)
    assert client.zcard("cogworker:unique:index") <= 1


def test_c24_a_job_that_is_tried_again_keeps_its_lock_for_the_delay_and_the_ttl(
    client, working, journal
):
    """C24, C25"""
    with working():
        jid = Fails.perform_async("retry")
        wait_until(lambda: client.zcard("cogworker:retry") == 1)
    assert list(locks(client).values()) == [jid]
    assert DAY + 9_990 < ttl(client) <= DAY + 10_000
    assert Fails.perform_async("retry") is None


@pytest.mark.parametrize("how", ["discard", "dead", "soon"])
def test_c25_c29_sk11_h104_every_end_frees_the_lock(client, working, journal, how):
    """C25, C29, SK-11, H104, H105"""
    with working():
        retry = how in ("soon", "discard")
        Fails.set(retry=retry).perform_async(how)
        journal.wait_for(f"{how} {2 if how == 'soon' else 1}")
        wait_until(lambda: not locks(client))
    assert client.zcard("cogworker:dead") == (1 if how == "dead" else 0)
    assert client.zcard("cogworker:unique:index") == 0
    assert Fails.perform_async(how)


def test_h105_a_job_that_dies_because_its_failure_cannot_be_recorded_frees_its_lock(
    client, working, settings, journal
):
    """H105"""
    settings.COGWORKER_SERVER_MIDDLEWARE = ["tests.uniquejobs.jobs.spoiling"]
    with working():
        job = {"class": "tests.uniquejobs.jobs.Executed", "args": ["a"], "unique": True}
        assert push({**job, "interrupted_count": 3})
        wait_until(lambda: client.zcard("cogworker:dead") == 1)
        assert locks(client) == {}


def test_c26_the_lock_of_a_newer_job_outlives_the_end_of_an_older_one(client, working, journal):
    """C26"""
    with working():
        old = Waiting.perform_async("w")
        journal.wait_for("started w")
        (key,) = client.scan_iter("cogworker:unique:lock:*")
        client.delete(key)  # its time was over
        new = Waiting.perform_in(1000, "w")
        assert list(locks(client).values()) == [new] != [old]
        journal.release("w")
        journal.wait_for("finished w")
        wait_until(lambda: client.get("cogworker:stats:processed") == b"1")
    assert list(locks(client).values()) == [new]


def test_until_executing_lets_the_next_one_in_when_the_first_has_begun(client, working, journal):
    with working():
        assert Executing.perform_in(1000, "later")
        assert Executing.perform_async("later") is None
        Executing.perform_async("a")
        journal.wait_for("started a")
        assert len(locks(client)) == 1
        assert Executing.perform_async("a")
        journal.wait_for("started a", times=2)
        journal.release("a")
        journal.wait_for("finished a", times=2)


def test_a_scheduled_job_has_its_lock_for_the_whole_ttl_when_it_is_due(client, working, journal):
    with working(1):
        Waiting.perform_async("first")
        journal.wait_for("started first")
        jid = Waiting.set(unique_ttl=500).perform_in(1, "w")
        (key,) = [key for key, owner in locks(client).items() if owner == jid]
        name = f"cogworker:unique:lock:{key}"
        client.expire(name, 50)
        wait_until(lambda: waiting(client) == [jid])
        assert client.ttl(name) > 495
        journal.release("first")
        journal.release("w")
        journal.wait_for("finished w")


# -- while executing


def test_while_executing_runs_one_at_a_time_and_blocks_no_processor(client, working, journal):
    with working(2):
        Alone.perform_async("a", "1")
        journal.wait_for("started a1")
        Alone.perform_async("a", "2")
        wait_until(lambda: client.zcard("cogworker:schedule") == 1)
        Append.perform_async("free")
        journal.wait_for("free")
        assert "started a2" not in journal.lines()
        journal.release("a2")
        journal.release("a1")
        lines = journal.wait_for("finished a2")
        assert lines.index("finished a1") < lines.index("started a2")
        wait_until(lambda: not locks(client))


def test_hu2_the_lock_of_a_job_that_runs_is_extended(client, working, journal, monkeypatch):
    """HU-2, PR-11"""
    with working():
        Alone.perform_async("a")
        Waiting.perform_async("w")
        journal.wait_for("started a")
        journal.wait_for("started w")
        for name in client.scan_iter("cogworker:unique:lock:*"):
            client.expire(name, 5)
        unique_feature.Unique().beat()
        assert all(client.ttl(each) <= 5 for each in client.scan_iter("cogworker:unique:lock:*"))
        now = time.monotonic()
        monkeypatch.setattr("django_cogworker.features.unique.running.monotonic", lambda: now + 300)
        unique_feature.Unique().beat()
        assert all(client.ttl(each) > 100 for each in client.scan_iter("cogworker:unique:lock:*"))
        journal.release("a")
        journal.release("w")
        journal.wait_for("finished a")
        wait_until(lambda: not locks(client))


# -- replace


def test_replace_drops_the_one_that_waits(client, working, journal):
    Latest.perform_async("a", "old")
    new = Latest.perform_async("a", "new")
    assert new is not None
    assert list(locks(client).values()) == [new]
    journal.release("anew")
    with working():
        journal.wait_for("finished a new")
        wait_until(lambda: not locks(client))
        wait_until(lambda: not list(client.scan_iter("cogworker:unique:*")))
    assert journal.count("started a old") == 0
    assert client.get("cogworker:stats:processed") == b"1"
    assert client.get("cogworker:stats:failed") is None


def test_replace_leaves_one_that_runs_alone_and_the_new_one_comes_after(client, working, journal):
    with working(1):
        Latest.perform_async("a", "old")
        journal.wait_for("started a old")
        new = Latest.perform_async("a", "new")
        journal.release("aold")
        journal.wait_for("finished a old")
        journal.wait_for("started a new")
        assert list(locks(client).values()) == [new]
        journal.release("anew")
        journal.wait_for("finished a new")
        wait_until(lambda: not list(client.scan_iter("cogworker:unique:*")))


def test_one_whose_lock_expired_is_not_taken_for_a_replaced_one(client, working, journal):
    Latest.perform_async("a", "old")
    (key,) = client.scan_iter("cogworker:unique:lock:*")
    client.delete(key)
    Latest.perform_async("a", "new")
    journal.release("aold")
    journal.release("anew")
    with working(1):
        journal.wait_for("finished a old")
        journal.wait_for("finished a new")


def test_the_note_of_a_replaced_job_outlives_its_wait(client):
    Latest.perform_in(10 * DAY, "a", "old")
    Latest.perform_async("a", "new")
    (noted,) = client.scan_iter("cogworker:unique:replaced:*")
    assert client.ttl(noted) > 10 * DAY


@pytest.mark.parametrize("mode", ["reliable", "basic"])
def test_a_guard_that_takes_notes_whom_it_ousts(redis_url, client, settings, mode):
    settings.COGWORKER_FETCH = mode
    store = get_store()
    for number, jid in enumerate("abb", 1):
        guard = Guard("lock", jid, 60, "take", ousted="noted")
        assert store.push("lane", number, [Outgoing(jid, "q", b"{}", guards=(guard,))]) == [None]
    assert client.hkeys("noted") == [b"a"]
    assert 0 < client.ttl("noted") <= 60
    client.set("cogworker:queue:broken", "no list")
    job = Outgoing("c", "broken", b"{}", guards=(Guard("lock", "c", 60, "take", ousted="noted"),))
    assert store.push("lane", 9, [job])[0] is not None
    if mode == "reliable":
        assert client.hkeys("noted") == [b"a"]
        assert client.get("lock") == b"b"


def test_what_was_recorded_can_be_forgotten(redis_url, client):
    store = get_store()
    client.zadd("runs", {"a": 1, "b": 2, "c": 3})
    store.apply([Effect("forget", "runs", ("a", "x"))])
    job = Outgoing("j", "q", b"{}", effects=(Effect("forget", "runs", ("b",)),))
    assert store.push("lane", 1, [job]) == [None]
    assert client.zrange("runs", 0, -1) == [b"c"]


# -- deletion, looking, releasing


def test_clearing_a_queue_frees_the_locks_of_its_jobs(client):
    """12.3"""
    Executed.perform_bulk([(str(each),) for each in range(1200)])
    Executed.set(priority=5).perform_async("urgent")
    Append.perform_async("plain")
    client.lpush(QUEUE, b"no job")
    assert Queue("default").clear() == 1203
    assert locks(client) == {}
    assert client.zcard("cogworker:unique:index") == 0
    assert Queue("default").size == 0
    assert Executed.perform_async("1")


def test_locks_can_be_seen_and_released(client):
    """CE-12, HU-2"""
    assert unique_locks() == []
    a, b = Executed.perform_async("a"), Executed.perform_in(100, "b")
    found = unique_locks()
    assert [each.jid for each in found] == [a, b]
    assert {each.job_class for each in found} == {"tests.uniquejobs.jobs.Executed"}
    assert DAY - 10 < found[0].ttl <= DAY
    assert unique_locks(limit=1) == found[:1] or unique_locks(limit=1)[0].jid == a
    assert release_lock(found[0].key)
    assert not release_lock(found[0].key)
    assert [each.jid for each in unique_locks()] == [b]
    assert client.zcard("cogworker:unique:index") == 1, "what is gone was cleared away"
    assert Executed.perform_async("a")
