"""One action for all that match: in steps, once each, and none that came after the beginning."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from django_cogworker.api import (
    Action,
    BulkAction,
    Criteria,
    DeadSet,
    Queue,
    RetrySet,
    ScheduledSet,
)
from django_cogworker.exceptions import InvalidQuery
from django_cogworker.store.store import get_store
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

pytestmark = pytest.mark.usefixtures("store")


def names(count: int, first: str = "j") -> list[str]:
    return [f"{first}{number:04}" for number in range(count)]


def through_json(place: Any, bulk: BulkAction) -> BulkAction:
    """As the next request of a page has it."""
    return BulkAction.resume(place, json.loads(json.dumps(bulk.state)))


class TestAll:
    def test_retry_all_of_a_queue(self, redis_client):
        """P246"""
        put(redis_client, RETRY, *names(5), queue="mail")
        put(redis_client, RETRY, *names(5, "other"))
        redis_client.zadd(RETRY, {b"junk": 5})
        progress = RetrySet().retry_all(queue="mail")
        assert (progress.done, progress.gone, progress.refused) == (5, 0, {})
        assert (progress.looked_at, progress.finished) == (11, True)
        assert progress.classes == {"shop.Gone": 5}
        assert sorted(queued(redis_client, "mail")) == names(5)
        assert len(RetrySet()) == 6

    def test_delete_all_with_what_is_no_job(self, redis_client):
        put(redis_client, DEAD, *names(1200))
        redis_client.zadd(DEAD, {b"junk": 5})
        redis_client.rpush("cogworker:job_attempts:j0007", "x")
        progress = DeadSet().delete_all()
        assert (progress.done, progress.looked_at) == (1201, 1201)
        assert progress.classes == {"shop.Gone": 1200, "(unparseable)": 1}
        assert redis_client.keys("*") == []

    def test_what_is_refused_is_said_by_reason_and_stays(self, redis_client):
        put(redis_client, RETRY, "a", "b", "c")
        redis_client.zadd(RETRY, {b"junk": 1, b"more": 1, failed("lost", queue=None): 1})
        progress = RetrySet().retry_all()
        assert progress.refused == {
            "it is no job; it can only be deleted": 2,
            "it names no queue": 1,
        }
        assert (progress.done, len(RetrySet())) == (3, 3)

    def test_kill_all_and_an_empty_set(self, redis_client):
        put(redis_client, RETRY, "a", "b")
        assert RetrySet().kill_all(jid="a").done == 1
        assert in_set(redis_client, DEAD) == ["a"]
        assert ScheduledSet().delete_all().finished

    def test_a_queue_with_priorities(self, redis_client):
        enqueue(redis_client, *names(700), tags=["red"])
        enqueue(redis_client, *names(700, "k"))
        key = "cogworker:queue:default:priority"
        redis_client.zadd(key, {failed(each, tags=["red"]): 5 for each in names(20, "p")})
        progress = Queue().delete_all(tag="red")
        assert (progress.done, progress.looked_at) == (720, 1420)
        assert queued(redis_client) == names(700, "k")
        assert redis_client.zcard(key) == 0
        bulk = Queue().bulk(Action("move", queue="low"))
        assert bulk.run().done == 700
        assert queued(redis_client, "low") == names(700, "k")

    def test_jobs_that_are_moved_keep_their_order_though_workers_fetch(self, redis_client):
        for number in range(0, 600, 2):
            enqueue(redis_client, f"j{number:04}", f"j{number + 1:04}", tags=["red"])
            enqueue(redis_client, f"k{number:04}")
        bulk = Queue().bulk(Action("move", queue="low"), tag="red")
        fetched = []
        while not bulk.step(budget=0).finished:
            fetched += [json.loads(redis_client.rpop(QUEUE))["jid"] for _ in range(10)]
        moved = queued(redis_client, "low")
        assert len(fetched) >= 30
        assert moved[:200] == sorted(moved[:200])
        assert sorted([*moved, *(each for each in fetched if each[0] == "j")]) == names(600)

    @pytest.mark.parametrize("same", [True, False])
    def test_none_is_left_out_though_they_go_while_it_walks(self, redis_client, same):
        members = [
            failed(each, tags=["red"] * (number % 3 > 0)) for number, each in enumerate(names(2500))
        ]
        redis_client.zadd(DEAD, {each: 5 if same else 5 + at for at, each in enumerate(members)})
        progress = DeadSet().retry_all(tag="red")
        assert (progress.done, progress.looked_at) == (1666, 2500)
        assert len(DeadSet()) == 834

    def test_moved_entries_of_one_score_are_met_again_and_left(self, redis_client):
        redis_client.zadd(SCHEDULE, {failed(each): 5 for each in names(1500)})
        progress = ScheduledSet().bulk(Action("move", queue="low")).run()
        assert (progress.done, progress.refused) == (1500, {})
        assert {each.queue for each in ScheduledSet()} == {"low"}
        moment = time.time() + 100
        assert ScheduledSet().bulk(Action("reschedule", at=moment)).run().done == 1500
        assert {each.at for each in ScheduledSet()} == {moment}


class TestSteps:
    def test_request_by_request(self, redis_client):
        put(redis_client, DEAD, *names(1000))
        bulk = BulkAction(DeadSet(), Action("delete"), Criteria(jid="5"))
        steps = 0
        while not bulk.progress.finished:
            bulk = through_json(DeadSet(), bulk)
            bulk.step(budget=0)
            steps += 1
        assert (bulk.progress.done, bulk.progress.looked_at) == (271, 1000)
        assert len(DeadSet()) == 729
        assert 5 < steps < 15
        again = through_json(DeadSet(), bulk).step()
        assert (again.done, again.finished) == (271, True)

    def test_a_step_whose_state_was_lost_is_done_again_and_nothing_twice(self, redis_client):
        redis_client.zadd(DEAD, {failed(each): 5 for each in names(1000)})
        bulk = BulkAction(DeadSet(), Action("retry"), Criteria(jid="5"))
        bulk.step(budget=0)
        lost = through_json(DeadSet(), bulk)
        bulk.step(budget=0)
        assert lost.run().finished
        assert sorted(queued(redis_client)) == [each for each in names(1000) if "5" in each]

    def test_who_is_quicker(self, redis_client, monkeypatch):
        """Somebody deletes them between the look and the step."""
        put(redis_client, DEAD, "a", "b", "c")
        real = get_store().refile

        def late(source: str, items: Any) -> Any:
            redis_client.zrem(DEAD, items[0].member)
            return real(source, items)

        monkeypatch.setattr(get_store(), "refile", late)
        progress = DeadSet().retry_all()
        assert (progress.done, progress.gone) == (2, 1)
        assert len(queued(redis_client)) == 2

    @pytest.mark.parametrize(
        "spoil",
        [
            {"place": "retry"},
            {"cursor": "x"},
            {"action": {"kind": "explode"}},
            {"criteria": {"what": "x"}},
            {"progress": {"what": 5}},
            {"begun": "x"},
        ],
    )
    def test_a_state_that_is_none(self, redis_client, spoil):
        bulk = BulkAction(DeadSet(), Action("retry"))
        bulk.step()
        bulk.progress.finished = False
        with pytest.raises(InvalidQuery):
            BulkAction.resume(DeadSet(), {**bulk.state, **spoil}).step()
        with pytest.raises(InvalidQuery):
            BulkAction.resume(DeadSet(), {})


class TestNewcomers:
    def test_they_are_left_alone(self, redis_client):
        now = redis_client.time()[0]
        put(redis_client, DEAD, *names(150))
        bulk = BulkAction(DeadSet(), Action("delete"))
        bulk.step(budget=0)
        put(redis_client, DEAD, "died later", at=now + 100)
        assert through_json(DeadSet(), bulk).run().done == 150
        assert in_set(redis_client, DEAD) == ["died later"]

    def test_one_that_dies_right_after_the_beginning(self, redis_client):
        put(redis_client, DEAD, "a")
        bulk = BulkAction(DeadSet(), Action("delete"))
        bulk._begun = redis_client.time()[0] - 50.0
        put(redis_client, DEAD, "died later", at=bulk._begun + 1)
        assert (bulk.run().done, bulk.progress.newer) == (1, 1)

    def test_whatever_their_place(self, redis_client):
        put(redis_client, RETRY, *names(150), at=10_000)
        put(redis_client, SCHEDULE, *names(150), at=10_000)
        enqueue(redis_client, *names(150))
        later = time.time() + 60
        kinds: list[tuple[Any, Any]] = [
            (RetrySet(), lambda: put(redis_client, RETRY, "new", failed_at=later)),
            (ScheduledSet(), lambda: put(redis_client, SCHEDULE, "new", created_at=later)),
            (Queue(), lambda: redis_client.rpush(QUEUE, failed("new", enqueued_at=later))),
        ]
        for place, arrive in kinds:
            bulk = BulkAction(place, Action("delete"))
            bulk.step(budget=0)
            arrive()
            progress = bulk.run()
            assert (progress.done, progress.newer) == (150, 1)
            assert jids(list(place)) == ["new"]

    def test_a_job_that_was_retried_and_is_back_is_not_retried_again(self, redis_client):
        put(redis_client, RETRY, *names(300), at=10_000)
        bulk = BulkAction(RetrySet(), Action("retry"))
        seen = 0
        while not bulk.step(budget=0).finished:
            # All that were retried fail at once, and wait in front of those that are still to come.
            while raw := redis_client.rpop(QUEUE):
                again = json.loads(raw)
                again["retry_count"] += 1
                del again["enqueued_at"]
                redis_client.zadd(RETRY, {json.dumps(again): 50})
                seen += 1
            assert seen <= 300
        assert (bulk.progress.done, bulk.progress.newer) == (300, seen)
        assert seen

    def test_so_is_one_that_somebody_retried(self, redis_client):
        put(redis_client, RETRY, *names(3))
        bulk = BulkAction(RetrySet(), Action("delete"))
        bulk._begun = time.time() - 50
        assert outcomes(RetrySet().retry(next(iter(RetrySet())))) == ["done"]
        redis_client.zadd(RETRY, {redis_client.rpop(QUEUE): 5})
        assert (bulk.run().done, bulk.progress.newer) == (2, 1)
