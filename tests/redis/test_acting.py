"""Moving jobs that wait by hand: what becomes of them, who hears of it, and that it is done once."""

from __future__ import annotations

import datetime as dt
import json
import threading
import time
from typing import Any

import pytest

from django_cogworker.api import Action, DeadSet, Queue, RetrySet, ScheduledSet, status
from django_cogworker.client import push_bulk
from django_cogworker.exceptions import ArgumentError, InvalidQuery
from django_cogworker.features import registry
from django_cogworker.features.base import Feature
from django_cogworker.store.refiling import Refiling
from django_cogworker.store.values import Effect
from tests.followed.jobs import Followed
from tests.redis.test_basic_mode import working
from tests.redis.waiting_jobs import (
    DEAD,
    QUEUE,
    RETRY,
    SCHEDULE,
    enqueue,
    failed,
    in_set,
    jids,
    outcomes,
    put,
    queued,
)
from tests.support.round_trips import counted
from tests.uniquejobs.jobs import Executed

pytestmark = pytest.mark.usefixtures("store")

SETS: dict[str, Any] = {SCHEDULE: ScheduledSet, RETRY: RetrySet, DEAD: DeadSet}


class TestRetry:
    @pytest.mark.parametrize("key", SETS)
    def test_it_goes_to_its_queue_once(self, redis_client, key):
        """P248 P249"""
        put(redis_client, key, "a", "b", at=time.time() + 9000, queue="low")
        entry = next(each for each in SETS[key]() if each.jid == "a")
        assert outcomes(SETS[key]().retry(entry)) == ["done"]
        assert outcomes(SETS[key]().run_now([entry])) == ["gone"]
        assert queued(redis_client, "low") == ["a"]
        assert in_set(redis_client, key) == ["b"]
        assert redis_client.sismember("cogworker:queues", "low")
        assert redis_client.llen("cogworker:queue:low:tokens") == 1
        (record,) = Queue("low")
        assert abs((record.enqueued_at or 0) - time.time()) < 5
        assert record.failures == entry.failures
        assert (record.retried_at is None) == (key == SCHEDULE)

    def test_with_its_priority(self, redis_client):
        put(redis_client, RETRY, "a", priority=7)
        RetrySet().retry(list(RetrySet()))
        assert [each.priority for each in Queue()] == [7]
        assert redis_client.zcard(f"{QUEUE}:priority") == 1

    def test_an_idle_worker_takes_it_up_and_a_dead_job_has_one_more_attempt(
        self, redis_client, journal
    ):
        """P248"""
        more: dict[str, Any] = {"class": "tests.project.jobs.FailOnce", "retry": False}
        put(redis_client, DEAD, "a", args=["a"], **more)
        with working():
            DeadSet().retry(list(DeadSet()))
            journal.wait_for("failed a")
            entries: list[Any] = []
            deadline = time.monotonic() + 20
            while not entries and time.monotonic() < deadline:
                entries = list(DeadSet())
        assert [(each.jid, each.failures) for each in entries] == [("a", 2)]

    def test_what_cannot_be_retried_stays(self, redis_client):
        """P266"""
        redis_client.zadd(DEAD, {b"junk": 1, failed("lost", queue=None): 2})
        redis_client.zadd(DEAD, {failed("wrapped", **{"class": "(unparseable)"}): 3})
        verdicts = DeadSet().retry(list(DeadSet()))
        assert [(each.outcome, each.reason) for each in verdicts] == [
            ("refused", "it is no job; it can only be deleted"),
            ("refused", "it names no queue"),
            ("refused", "it is no job; it can only be deleted"),
        ]
        assert redis_client.zcard(DEAD) == 3
        enqueue(redis_client, "a")
        assert outcomes(Queue().retry(list(Queue()))) == ["refused"]
        assert queued(redis_client) == ["a"]

    def test_a_queue_of_the_wrong_type_keeps_its_job_and_its_neighbour_goes_on(
        self, redis_client, caplog
    ):
        put(redis_client, DEAD, "a", queue="bad")
        put(redis_client, DEAD, "b", at=200)
        redis_client.set("cogworker:queue:bad", "x")
        verdicts = DeadSet().retry(list(DeadSet()))
        assert outcomes(verdicts) == ["done", "refused"]
        assert "WRONGTYPE" in verdicts[1].reason
        assert in_set(redis_client, DEAD) == ["a"]
        assert "cannot be moved" in caplog.text

    def test_two_at_once_move_each_job_once(self, redis_client):
        put(redis_client, DEAD, *(f"j{number}" for number in range(300)))
        entries = list(DeadSet())
        barrier = threading.Barrier(4)
        found: list[list[str]] = []

        def press() -> None:
            barrier.wait()
            found.append(outcomes(DeadSet().retry(entries)))

        threads = [threading.Thread(target=press) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert [sum(each[at] == "done" for each in found) for at in range(300)] == [1] * 300
        assert sorted(queued(redis_client)) == sorted(jids(entries))

    def test_hundreds_are_one_round_trip(self, redis_client, store):
        put(redis_client, DEAD, *(f"j{number}" for number in range(400)))
        entries = list(DeadSet())
        DeadSet().retry(entries.pop())
        with counted() as trips:
            verdicts = DeadSet().retry(entries)
        assert outcomes(verdicts) == ["done"] * 399
        assert trips.number == 1 or not store.reliable

    def test_jobs_of_several_places_together(self, redis_client):
        put(redis_client, DEAD, "a")
        put(redis_client, RETRY, "b")
        assert outcomes(DeadSet().act([*RetrySet(), *DeadSet()], Action("retry"))) == ["done"] * 2
        assert sorted(queued(redis_client)) == ["a", "b"]


class TestDelete:
    @pytest.mark.parametrize("key", SETS)
    def test_with_the_record_of_its_attempts(self, redis_client, key):
        """P248"""
        put(redis_client, key, "a", "b")
        redis_client.rpush("cogworker:job_attempts:a", "x")
        redis_client.rpush("cogworker:job_attempts:b", "x")
        entries = [each for each in SETS[key]() if each.jid == "a"]
        assert outcomes(SETS[key]().delete(entries)) == ["done"]
        assert outcomes(SETS[key]().delete(entries)) == ["gone"]
        assert in_set(redis_client, key) == ["b"]
        assert redis_client.keys("cogworker:job_attempts:*") == [b"cogworker:job_attempts:b"]

    def test_what_is_no_job(self, redis_client):
        redis_client.zadd(RETRY, {b"junk": 1})
        redis_client.lpush(QUEUE, b"junk", b"junk")
        assert outcomes(RetrySet().delete(list(RetrySet()))) == ["done"]
        assert outcomes(Queue().delete(list(Queue()))) == ["done", "done"]
        assert not redis_client.exists(RETRY, QUEUE)

    def test_from_a_queue_though_others_were_fetched_pushed_and_put_back(self, redis_client):
        enqueue(redis_client, *(f"j{number:03}" for number in range(500)))
        push_bulk([{"class": "x", "args": [], "jid": f"p{each}", "priority": 3} for each in "ab"])
        entries = {each.jid: each for each in Queue()}
        for _ in range(50):
            redis_client.rpop(QUEUE)
        enqueue(redis_client, "new")
        redis_client.lrem(QUEUE, 1, entries["j200"].raw)
        redis_client.rpush(QUEUE, entries["j003"].raw)
        wanted = ["pa", "j003", "j049", "j050", "j199", "j200", "j201", "j499"]
        verdicts = Queue().delete([entries[each] for each in wanted])
        assert [each.jid for each in verdicts if each.outcome == "gone"] == ["j049", "j200"]
        left = [each for each in map("j{:03}".format, range(50, 500)) if each not in wanted]
        assert queued(redis_client) == [*left, "new"]
        assert redis_client.zcard(f"{QUEUE}:priority") == 1

    def test_one_fetch_has_moved_all_by_the_same_number(self, redis_client, store, monkeypatch):
        """So one of them is looked for, and the others are where that one tells."""
        monkeypatch.setattr("django_cogworker.store.refiling.LOOKS", 1)
        enqueue(redis_client, *map(str, range(20)))
        entries = list(Queue())
        for _ in range(5):
            redis_client.rpop(QUEUE)
        with counted() as trips:
            assert outcomes(Queue().delete(entries[5:])) == ["done"] * 15
        assert trips.number == 1 or not store.reliable

    def test_jobs_put_back_have_moved_it_away_from_the_end(self, redis_client):
        enqueue(redis_client, "a", "b")
        entries = list(Queue())
        redis_client.rpush(QUEUE, *map(str, range(90)))
        assert outcomes(Queue().delete(entries[1])) == ["done"]
        assert redis_client.llen(QUEUE) == 91

    def test_equal_bytes_are_taken_one_by_one(self, redis_client):
        redis_client.lpush(QUEUE, *[b"same"] * 5, b"other")
        entries = list(Queue())
        assert outcomes(Queue().delete(entries[:2])) == ["done", "done"]
        assert redis_client.lrange(QUEUE, 0, -1) == [b"other", *[b"same"] * 3]

    def test_what_is_not_where_it_was_is_looked_for_in_calls_of_their_own(
        self, redis_client, store, monkeypatch
    ):
        monkeypatch.setattr("django_cogworker.store.refiling.LOOKS", 1)
        members = enqueue(redis_client, *map(str, range(20)))
        gone = Refiling(b"gone", "gone")
        items = [gone, *(Refiling(each, "gone") for each in members[5:8]), gone]
        with counted() as trips:
            assert store.refile(QUEUE, items) == [0, 1, 1, 1, 0]
        assert trips.number == 5 or not store.reliable
        assert queued(redis_client) == [*map(str, range(5)), *map(str, range(8, 20))]


class TestReschedule:
    @pytest.mark.parametrize("key", [SCHEDULE, RETRY])
    def test_the_same_bytes_at_another_time(self, redis_client, key):
        """P250"""
        (member, other) = put(redis_client, key, "a", "b")
        entry = next(each for each in SETS[key]() if each.jid == "a")
        moment = time.time() + 1800
        assert outcomes(SETS[key]().reschedule(entry, moment)) == ["done"]
        assert redis_client.zrange(key, 0, -1, withscores=True) == [
            (other, 101.0),
            (member, round(moment, 6)),
        ]
        redis_client.zrem(key, member)
        assert outcomes(SETS[key]().reschedule(entry, moment)) == ["gone"]
        assert redis_client.zrange(key, 0, -1) == [other]

    def test_what_comes_due_soon_wakes_a_worker(self, redis_client):
        put(redis_client, SCHEDULE, "a", "b")
        first, second = ScheduledSet()
        ScheduledSet().reschedule(first, dt.datetime.now(dt.UTC) + dt.timedelta(hours=1))
        assert redis_client.llen("cogworker:schedule:tokens") == 0
        ScheduledSet().reschedule(second, time.time() + 1)
        assert redis_client.llen("cogworker:schedule:tokens") == 1

    def test_those_that_wait_for_no_time(self, redis_client):
        """P252"""
        put(redis_client, DEAD, "a")
        enqueue(redis_client, "b")
        assert outcomes(DeadSet().reschedule(list(DeadSet()), 5)) == ["refused"]
        assert outcomes(Queue().reschedule(list(Queue()), 5)) == ["refused"]
        assert redis_client.zscore(DEAD, failed("a")) == 100

    @pytest.mark.parametrize("at", ["x", dt.datetime(2030, 1, 1), float("inf"), 1e15])
    def test_what_is_no_time(self, redis_client, at):
        with pytest.raises(ArgumentError):
            ScheduledSet().reschedule([], at)


class TestMove:
    def test_from_queue_to_queue(self, redis_client):
        enqueue(redis_client, "a", "b")
        push_bulk([{"class": "x", "args": [], "jid": "p", "priority": 3}])
        assert outcomes(Queue().move(list(Queue()), "low")) == ["done"] * 3
        assert jids(list(Queue("low"))) == ["p", "a", "b"]
        assert {each.item["queue"] for each in Queue("low")} == {"low"}
        assert Queue().size == 0
        assert redis_client.llen("cogworker:queue:low:tokens") == 1

    @pytest.mark.parametrize("key", SETS)
    def test_in_a_set_it_waits_on(self, redis_client, key):
        put(redis_client, key, "a", at=1234.5)
        assert outcomes(SETS[key]().move(list(SETS[key]()), "low")) == ["done"]
        (entry,) = SETS[key]()
        assert (entry.queue, entry.score) == ("low", 1234.5)
        assert entry.failures == (key != SCHEDULE)
        assert outcomes(SETS[key]().move(entry, "low")) == ["refused"]
        assert not redis_client.exists("cogworker:queue:low", QUEUE)

    def test_with_a_look_that_is_old_it_keeps_the_time_that_it_has_now(self, redis_client):
        put(redis_client, RETRY, "a")
        (old,) = RetrySet()
        RetrySet().reschedule(old, 5000)
        assert outcomes(RetrySet().move(old, "low")) == ["done"]
        assert [each.at for each in RetrySet()] == [5000]

    def test_to_where_it_is(self, redis_client, store):
        (member,) = enqueue(redis_client, "a")
        assert [each.reason for each in Queue().move(list(Queue()), "default")] == [
            "it is there already"
        ]
        item = Refiling(member, "queue", member, "default")
        assert store.refile(QUEUE, [item]) == ["it is on that queue"]
        assert queued(redis_client) == ["a"]

    @pytest.mark.parametrize("queue", ["", "a b", 5])
    def test_what_is_no_queue(self, redis_client, queue):
        with pytest.raises(InvalidQuery):
            Queue().move([], queue)


class TestKill:
    def test_it_dies_now_and_is_not_counted_as_a_failure(self, redis_client, settings):
        settings.COGWORKER_DEAD_MAX_JOBS = 3
        put(redis_client, DEAD, "x", "y", "z", at=time.time() - 50)
        put(redis_client, RETRY, "a")
        enqueue(redis_client, "b", enqueued_at=5)
        assert outcomes(RetrySet().kill(list(RetrySet()))) == ["done"]
        assert outcomes(Queue().kill(list(Queue()))) == ["done"]
        dead = DeadSet().page().entries
        assert sorted(jids(dead[:2])) == ["a", "b"]
        assert jids(dead[2:]) == ["z"]
        assert dead[0].at == pytest.approx(time.time(), abs=10)
        assert all(each.enqueued_at is None for each in dead)
        assert redis_client.get("cogworker:stats:failed") is None
        assert outcomes(DeadSet().kill(dead)) == ["refused"] * 3


class Listening(Feature):
    """Notes in Redis what it hears of."""

    name = "listening"

    def _note(self, what: str) -> tuple[Effect, ...]:
        return (Effect("append", "heard", (what, 100)),)

    def graduated(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        return self._note(f"graduated {payload['queue']}")

    def refiled(self, payload: dict[str, Any], place: str, wait: float) -> tuple[Effect, ...]:
        return self._note(f"refiled {payload['queue']} {place} {wait:.0f}")

    def removed(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        return self._note(f"removed {payload['jid']}")


class TestFeatures:
    def test_they_hear_of_what_was_done_and_of_nothing_else(self, redis_client):
        feature = Listening()
        registry.add(feature)
        try:
            put(redis_client, RETRY, "a", "b")
            entries = list(RetrySet())
            RetrySet().reschedule(entries[0], time.time() + 1000)
            RetrySet().move([each for each in RetrySet() if each.jid == "a"], "low")
            redis_client.zrem(RETRY, entries[1].raw)
            for act in (RetrySet().retry, RetrySet().kill, RetrySet().delete):
                assert outcomes(act(entries[1])) == ["gone"]
            RetrySet().kill(list(RetrySet()))
            DeadSet().retry(list(DeadSet()))
            Queue("low").delete(list(Queue("low")))
        finally:
            registry.remove(feature)
        assert [each.decode() for each in redis_client.lrange("heard", 0, -1)] == [
            "refiled default retry 1000",
            "refiled low retry 1000",
            "refiled low dead 0",
            "graduated low",
            "removed a",
        ]

    def test_the_lock_of_a_unique_job(self, redis_client):
        def locks() -> list[Any]:
            return redis_client.keys("cogworker:unique:lock:*")

        jid = Executed.perform_in(100, "a")
        assert Executed.perform_async("a") is None
        (lock,) = locks()
        ScheduledSet().reschedule(list(ScheduledSet()), time.time() + 500_000)
        assert redis_client.ttl(lock) > 500_000
        ScheduledSet().kill(list(ScheduledSet()))
        assert not locks()
        (dead,) = DeadSet()
        assert dead.jid == jid
        DeadSet().retry(dead)
        assert redis_client.get(lock).decode() == jid
        assert Executed.perform_async("a") is None
        Queue().move(list(Queue()), "low")
        assert redis_client.get(lock).decode() == jid
        Queue("low").delete(list(Queue("low")))
        assert not locks()
        assert not redis_client.zcard("cogworker:unique:index")
        assert Executed.perform_async("a")

    @pytest.mark.parametrize("kind", ["reschedule", "move", "retry", "kill", "delete"])
    def test_a_job_in_line_for_a_lock_leaves_the_line(self, redis_client, kind):
        """So that nobody makes it due at once against the wish, or wakes one that is not there."""
        fields: dict[str, Any] = {"unique": "while_executing", "unique_key": "k"}
        members = put(redis_client, SCHEDULE, "a", "b", **fields)
        redis_client.zadd("cogworker:unique:waiters:k", dict.fromkeys(members, 1))
        redis_client.set("cogworker:unique:lock:k", "somebody")
        action = Action(
            kind,
            at=time.time() + 100 if kind == "reschedule" else None,
            queue="low" if kind == "move" else "",
        )
        entry = next(iter(ScheduledSet()))
        assert outcomes(ScheduledSet().act(entry, action)) == ["done"]
        assert redis_client.zrange("cogworker:unique:waiters:k", 0, -1) == [members[1]]
        assert redis_client.get("cogworker:unique:lock:k") == b"somebody"

    def test_the_status_of_a_tracked_job(self, redis_client):
        jid = Followed.perform_in(100, "a") or ""

        def known() -> tuple[str, str]:
            found = status(jid)
            assert found is not None
            return found.state, found.queue

        due = time.time() + 9_000
        ScheduledSet().reschedule(list(ScheduledSet()), due)
        found = status(jid)
        assert found is not None
        assert found.due == pytest.approx(due, abs=1)
        ScheduledSet().move(list(ScheduledSet()), "low")
        assert known() == ("scheduled", "low")
        ScheduledSet().run_now(list(ScheduledSet()))
        assert known() == ("queued", "low")
        Queue("low").move(list(Queue("low")), "mail")
        assert known() == ("queued", "mail")
        Queue("mail").kill(list(Queue("mail")))
        assert known() == ("dead", "mail")
        DeadSet().delete(list(DeadSet()))
        assert status(jid) is None

    def test_the_lock_of_a_periodic_entry(self, redis_client):
        fields: dict[str, Any] = {"periodic": "nightly", "slot": 5, "periodic_lock": True}
        put(redis_client, RETRY, "a", **fields)
        key = "cogworker:periodic:running:nightly"
        RetrySet().reschedule(list(RetrySet()), time.time() + 300_000)
        assert redis_client.get(key) == b"a"
        assert redis_client.ttl(key) > 300_000
        RetrySet().kill(list(RetrySet()))
        assert not redis_client.exists(key)
        assert redis_client.lrange("cogworker:periodic:outcomes:nightly", -1, -1) == [b"5 a dead"]


class TestActions:
    @pytest.mark.parametrize(
        "fields",
        [
            {"kind": "explode"},
            {"kind": "retry", "at": 5},
            {"kind": "reschedule"},
            {"kind": "reschedule", "at": True},
            {"kind": "move"},
            {"kind": "delete", "queue": "low"},
            {"kind": "retry", "what": 5},
            {},
        ],
    )
    def test_what_is_none(self, fields):
        with pytest.raises(InvalidQuery):
            Action.read(fields)

    @pytest.mark.parametrize(
        "action", [Action("retry"), Action("reschedule", at=5.5), Action("move", queue="low")]
    )
    def test_there_and_back_through_json(self, action):
        assert Action.read(json.loads(json.dumps(action.as_dict()))) == action
