"""Due jobs: read by one script, moved by another, by any number of movers."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from django_cogworker.conf import get_config
from django_cogworker.store.store import Store, get_store
from django_cogworker.store.values import Move
from django_cogworker.worker.outage import Outage
from django_cogworker.worker.scheduler import Scheduler
from tests.support.waiting import wait_until


@pytest.fixture
def store(redis_url: str) -> Store:
    return get_store()


@pytest.fixture
def scheduler(store: Store) -> Scheduler:
    return Scheduler(store=store, outage=Outage("redis"), turned=lambda: None)


def member(name: str, queue: Any = "default", **fields: Any) -> bytes:
    return json.dumps({"class": "x", "jid": name, "args": [], "queue": queue, **fields}).encode()


def add(store: Store, key: str, seconds: float, *members: bytes | str) -> None:
    now = float(store.client.time()[0])
    entries: dict[Any, float] = dict.fromkeys(members, now + seconds)
    store.client.zadd(key, entries)


def queued(store: Store, queue: str = "default") -> list[str]:
    raw = store.client.lrange(store.keys.queue(queue).jobs, 0, -1)
    return [json.loads(each)["jid"] for each in reversed(raw)]


def test_a_due_job_moves_to_its_queue_and_a_future_one_stays(store, scheduler):
    """L166"""
    add(store, store.keys.schedule, -1, member("due"))
    add(store, store.keys.schedule, 100, member("future"))
    add(store, store.keys.retry, -1, member("again", "low"))
    wait = scheduler.move_due()
    assert queued(store) == ["due"]
    assert queued(store, "low") == ["again"]
    assert store.client.zrange(store.keys.schedule, 0, -1) == [member("future")]
    assert store.client.zcard(store.keys.retry) == 0
    assert 90_000 < wait <= 101_000
    assert store.client.smembers(store.keys.queues) == {b"default", b"low"}
    assert store.client.llen(store.keys.queue("low").tokens) == 1


def test_a_moved_job_gets_a_new_time_of_enqueueing(store, scheduler):
    """L168"""
    now = store.client.time()[0]
    add(store, store.keys.retry, -1, member("a", enqueued_at=1.0, at=2.0))
    scheduler.move_due()
    (raw,) = store.client.lrange(store.keys.queue("default").jobs, 0, -1)
    assert raw.count(b"enqueued_at") == 1
    assert json.loads(raw)["enqueued_at"] >= now


def test_a_moved_job_keeps_its_priority(store, scheduler):
    add(store, store.keys.schedule, -1, member("a", priority=9), member("b", priority="junk"))
    scheduler.move_due()
    assert store.client.zcard(store.keys.queue("default").priority) == 1
    assert queued(store) == ["b"]


@pytest.mark.parametrize(
    "junk",
    [
        b"junk",
        b"[1]",
        b'{"class":"x","jid":"j"}',
        b'{"class":"x","jid":"j","queue":""}',
        b"\xff\xfe",
    ],
)
def test_junk_is_buried_whole_and_the_good_one_behind_it_moves(store, scheduler, caplog, junk):
    """L169"""
    add(store, store.keys.schedule, -2, junk)
    add(store, store.keys.schedule, -1, member("good"))
    scheduler.move_due()
    assert queued(store) == ["good"]
    assert store.client.zcard(store.keys.schedule) == 0
    (raw,) = store.client.zrange(store.keys.dead, 0, -1)
    wrapper = json.loads(raw)
    assert wrapper["class"] == "(unparseable)"
    assert wrapper["raw_payload"] == junk.decode("utf-8", "backslashreplace")
    assert store.client.get(store.keys.failed) == b"1"
    assert "is no job" in caplog.text


@pytest.mark.parametrize(("bad", "good"), [("schedule", "retry"), ("retry", "schedule")])
def test_a_set_of_the_wrong_type_does_not_hold_up_the_other(store, scheduler, caplog, bad, good):
    """L170"""
    store.client.set(getattr(store.keys, bad), "text")
    add(store, getattr(store.keys, good), -1, member("a"))
    scheduler.move_due()
    assert queued(store) == ["a"]
    assert caplog.text.count("WRONGTYPE") >= 1


def test_two_sets_of_the_wrong_type_are_told_once_each_not_at_every_look(store, scheduler, caplog):
    """HU-9"""
    store.client.set(store.keys.schedule, "text")
    store.client.set(store.keys.retry, "text")
    for _ in range(5):
        scheduler.move_due()
    assert len([each for each in caplog.records if "WRONGTYPE" in each.message]) == 2


def test_a_job_whose_queue_has_the_wrong_type_is_postponed_and_the_others_move(
    store, scheduler, caplog
):
    store.client.set(store.keys.queue("bad").jobs, "text")
    add(store, store.keys.schedule, -2, member("b", "bad"))
    add(store, store.keys.schedule, -1, member("a"))
    now = float(store.client.time()[0])
    scheduler.move_due()
    assert queued(store) == ["a"]
    score = store.client.zscore(store.keys.schedule, member("b", "bad"))
    assert 58 < score - now < 63
    assert "postponed" in caplog.text
    assert scheduler.move_due() > 0

    store.client.delete(store.keys.queue("bad").jobs)
    add(store, store.keys.schedule, -1, member("b", "bad"))
    scheduler.move_due()
    assert queued(store, "bad") == ["b"]


def test_junk_waits_where_the_dead_set_has_the_wrong_type(store, scheduler):
    store.client.set(store.keys.dead, "text")
    add(store, store.keys.schedule, -2, "junk")
    add(store, store.keys.schedule, -1, member("a"))
    scheduler.move_due()
    assert queued(store) == ["a"]
    assert store.client.zrange(store.keys.schedule, 0, -1) == [b"junk"]
    assert store.client.get(store.keys.failed) is None


def test_of_two_movers_one_wins_and_the_other_finds_it_gone(store):
    """L173"""
    add(store, store.keys.schedule, -1, member("a"))
    move = Move(member("a"), member("a"), "default")
    assert store.graduate(store.keys.schedule, [move]) == [1]
    assert store.graduate(store.keys.schedule, [move]) == [0]
    assert queued(store) == ["a"]


def test_many_movers_at_once_move_each_job_once(store):
    names = [f"j{number}" for number in range(3000)]
    add(store, store.keys.schedule, -1, *(member(each) for each in names[:1500]))
    add(store, store.keys.retry, -1, *(member(each) for each in names[1500:]))

    def move() -> None:
        scheduler = Scheduler(store=store, outage=Outage("redis"), turned=lambda: None)
        while scheduler.move_due() in (0, 1000):
            if not store.client.exists(store.keys.schedule, store.keys.retry):
                return

    threads = [threading.Thread(target=move) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(queued(store)) == sorted(names)


def test_all_that_is_due_moves_not_only_one_batch(store, scheduler):
    add(store, store.keys.schedule, -1, *(member(f"j{number}") for number in range(1700)))
    looks = 1
    while scheduler.move_due() == 0:
        looks += 1
    assert store.client.llen(store.keys.queue("default").jobs) == 1700
    assert looks == 4


def test_the_oldest_due_job_moves_first(store, scheduler):
    for seconds, name in ((-1, "c"), (-3, "a"), (-2, "b")):
        add(store, store.keys.schedule, seconds, member(name))
    scheduler.move_due()
    assert queued(store) == ["a", "b", "c"]


def test_buried_junk_keeps_the_dead_set_bounded(redis_url, settings):
    settings.COGWORKER_DEAD_MAX_JOBS = 3
    store = get_store()
    assert get_config().dead_max_jobs == 3
    add(store, store.keys.schedule, -1, *(f"junk{number}" for number in range(8)))
    Scheduler(store=store, outage=Outage("redis"), turned=lambda: None).move_due()
    assert store.client.zcard(store.keys.dead) == 3
    assert store.client.get(store.keys.failed) == b"8"


def test_the_loop_sleeps_until_the_next_job_is_due_and_stops_when_quiet(store, scheduler):
    thread = threading.Thread(target=scheduler.loop)
    thread.start()
    try:
        add(store, store.keys.schedule, -1, member("a"))
        scheduler.due_in(0)
        wait_until(lambda: queued(store) == ["a"])
        scheduler.quiet = True
        add(store, store.keys.schedule, -1, member("b"))
        scheduler.due_in(0)
        assert queued(store) == ["a"]
        scheduler.resume()
        wait_until(lambda: queued(store) == ["a", "b"])
    finally:
        scheduler.end()
        thread.join(5)
    assert not thread.is_alive()
