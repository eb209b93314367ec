"""Enqueueing tasks and asking for their results, before any worker comes."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from django.utils import timezone

from django_cogworker.api import ScheduledSet, cancel, find_job
from django_cogworker.exceptions import ArgumentError, DuplicateJob, PushError
from django_cogworker.tasks import CogworkerBackend
from django_cogworker.tasks.compat import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from tests.project.jobs import Append
from tests.support.round_trips import counted
from tests.tasked import tasks

BACKEND: Any = task_backends["default"]
QUEUE = "cogworker:queue:default"


@pytest.fixture
def enqueued() -> Any:
    """The results that the signal told of."""
    found: list[Any] = []

    def receive(sender: Any, task_result: Any, **kwargs: Any) -> None:
        assert sender is CogworkerBackend
        found.append(task_result)

    task_enqueued.connect(receive)
    yield found
    task_enqueued.disconnect(receive)


def only_payload(client: Any, key: str = QUEUE) -> dict[str, Any]:
    kind = client.type(key)
    (raw,) = client.lrange(key, 0, -1) if kind == b"list" else client.zrange(key, 0, -1)
    payload: dict[str, Any] = json.loads(raw)
    return payload


def test_a_task_is_a_job_on_its_queue(redis_client, enqueued):
    result = tasks.add.using(queue_name="mail").enqueue(1, right=2)
    payload = only_payload(redis_client, "cogworker:queue:mail")
    assert payload["class"] == "tests.tasked.tasks.add"
    assert (payload["args"], payload["kwargs"]) == ([1], {"right": 2})
    assert payload["jid"] == result.id
    assert payload["retry"] is True
    assert (result.status, result.attempts) == (TaskResultStatus.READY, 0)
    assert [each.id for each in enqueued] == [result.id]
    found = find_job(result.id)
    assert found.everywhere


def test_the_result_that_redis_knows_is_the_one_that_was_returned(redis_url):
    task = tasks.add.using(priority=7, queue_name="mail")
    result = task.enqueue(1, right=2)
    assert BACKEND.get_result(result.id) == result
    assert task.get_result(result.id).task == task
    assert async_to_sync(BACKEND.aget_result)(result.id) == result
    before = pickle.dumps(result)
    result.refresh()
    assert pickle.loads(before) == result


def test_aenqueue(redis_client, enqueued):
    result = async_to_sync(tasks.add.aenqueue)(1, 2)
    assert only_payload(redis_client)["jid"] == result.id
    assert len(enqueued) == 1


def test_a_deferred_task_is_scheduled(redis_url):
    when = timezone.now() + dt.timedelta(hours=1)
    result = tasks.add.using(run_after=when).enqueue(1)
    (entry,) = ScheduledSet()
    assert entry.jid == result.id
    assert abs(entry.at - when.timestamp()) < 0.001
    again = BACKEND.get_result(result.id)
    assert again.task.run_after == when
    assert again.status == TaskResultStatus.READY


def test_without_time_zones_a_deferred_task_is_meant_in_local_time(redis_url, settings):
    settings.USE_TZ = False
    when = dt.datetime.now().replace(microsecond=0) + dt.timedelta(hours=1)
    tasks.add.using(run_after=when).enqueue(1)
    (entry,) = ScheduledSet()
    assert entry.at == timezone.make_aware(when).timestamp()


@pytest.mark.parametrize(("priority", "band"), [(100, 0), (1, 99), (-1, 101), (-100, 200)])
def test_the_priority_is_that_of_the_job(redis_client, priority, band):
    tasks.add.using(priority=priority).enqueue(1)
    ((_, score),) = redis_client.zrange(f"{QUEUE}:priority", 0, -1, withscores=True)
    assert int(score // 2**44) == band
    assert only_payload(redis_client, f"{QUEUE}:priority")["priority"] == priority


def test_a_task_without_priority_pays_nothing_for_it(redis_client):
    """No command of sorted sets is run, and no field of the payload tells of it."""
    redis_client.config_resetstat()
    tasks.add.enqueue(1)
    ran = redis_client.info("commandstats")
    assert not [name for name in ran if name.startswith(("cmdstat_z", "cmdstat_Z"))]
    assert "priority" not in only_payload(redis_client)
    assert redis_client.keys(f"{QUEUE}:priority*") == []


def test_a_push_is_one_round_trip_and_so_is_a_result(redis_url):
    tasks.add.enqueue(0)
    with counted() as trips:
        result = tasks.add.enqueue(1)
    assert trips.number == 1
    with counted() as trips:
        BACKEND.get_result(result.id)
    assert trips.number == 1


def test_an_ordinary_job_writes_what_it_wrote_before(redis_client):
    Append.perform_async("a")
    assert "task" not in only_payload(redis_client)
    assert redis_client.keys("cogworker:status:*") == []


@pytest.mark.parametrize(
    ("args", "kwargs", "error"),
    [
        ((dt.datetime(2026, 1, 1),), {}, TypeError),
        (({1, 2},), {}, TypeError),
        ((float("nan"),), {}, ArgumentError),
        ((), {}, ArgumentError),
        ((1, 2, 3), {}, ArgumentError),
        ((1,), {"wrong": 2}, ArgumentError),
    ],
)
def test_bad_arguments_are_an_error_before_anything_is_stored(
    redis_client, enqueued, args, kwargs, error
):
    with pytest.raises(error):
        tasks.add.enqueue(*args, **kwargs)
    assert redis_client.keys("*") == []
    assert enqueued == []


def test_arguments_are_seen_as_json_has_them(redis_url):
    result = tasks.nests.enqueue({1: (2, b"x"), "$": "date"})
    assert result.args == [{"1": [2, "x"], "$": "date"}]
    assert BACKEND.get_result(result.id).args == result.args


@pytest.mark.django_db(transaction=True)
def test_dt2_ce10_a_task_waits_for_the_commit(redis_client, enqueued):
    """DT-2, CE-10: as all ways to enqueue."""
    with transaction.atomic():
        result = tasks.add.enqueue(1)
        assert result.status == TaskResultStatus.READY
        assert redis_client.keys("*") == []
        assert enqueued == []
        with pytest.raises(TaskResultDoesNotExist):
            BACKEND.get_result(result.id)
    assert [each.id for each in enqueued] == [result.id]
    assert BACKEND.get_result(result.id) == result


@pytest.mark.django_db(transaction=True)
def test_after_a_rollback_there_is_no_task(redis_client, enqueued):
    with transaction.atomic():
        tasks.add.enqueue(1)
        transaction.set_rollback(True)
    assert redis_client.keys("*") == []
    assert enqueued == []


@pytest.mark.django_db(transaction=True)
def test_the_off_switches_for_the_commit_count_for_tasks_too(redis_client, settings):
    with transaction.atomic():
        result = tasks.optioned.enqueue()
        assert redis_client.llen(QUEUE) == 1
        settings.COGWORKER_ENQUEUE_ON_COMMIT = False
        tasks.add.enqueue(1)
        assert redis_client.llen(QUEUE) == 2
    assert BACKEND.get_result(result.id)


def test_a_second_call_of_a_unique_task_has_the_result_of_the_first(redis_client, enqueued):
    first = tasks.once.enqueue("a")
    second = tasks.once.enqueue("a")
    assert (second, len(enqueued)) == (first, 1)
    assert redis_client.llen(QUEUE) == 1
    assert tasks.once.enqueue("b") != first


def test_a_unique_task_may_raise_instead(redis_url):
    tasks.once_or_error.enqueue("a")
    with pytest.raises(DuplicateJob):
        tasks.once_or_error.enqueue("a")


def keep_back(push: Any) -> Any:
    return lambda payload: None


def test_a_task_that_a_middleware_keeps_back_is_an_error(redis_url, settings):
    settings.COGWORKER_CLIENT_MIDDLEWARE = [f"{__name__}.keep_back"]
    with pytest.raises(PushError, match="client middleware kept it back"):
        tasks.add.enqueue(1)


def test_what_is_no_result_of_this_backend_is_not_found(redis_client, settings):
    plain = Append.set(track=True).perform_async("a")
    other = tasks.add.enqueue(1)
    broken = tasks.add.enqueue(1)
    redis_client.hset(f"cogworker:status:{broken.id}", "task", "{")
    deleted = tasks.add.enqueue(1)
    redis_client.delete(f"cogworker:status:{deleted.id}")
    settings.TASKS = {**settings.TASKS, "second": settings.TASKS["default"]}
    for jid in (plain, broken.id, deleted.id, "123", "", "x" * 64, 12):
        with pytest.raises(TaskResultDoesNotExist):
            BACKEND.get_result(jid)
    with pytest.raises(TaskResultDoesNotExist):
        task_backends["second"].get_result(other.id)


def test_a_cancelled_task_has_failed_with_a_reason(redis_url):
    result = tasks.add.enqueue(1)
    cancel(result.id)
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert result.finished_at
    (error,) = result.errors
    assert error.exception_class_path == "django_cogworker.exceptions.JobCancelled"
    assert "cancelled" in error.traceback


def test_before_its_end_a_task_is_remembered_for_longer_than_a_day(redis_client):
    result = tasks.add.enqueue(1)
    assert redis_client.ttl(f"cogworker:status:{result.id}") > 86_400


def test_the_backend_needs_no_redis_until_it_is_used(settings):
    settings.COGWORKER_REDIS = "redis://127.0.0.1:1/0"
    backend = CogworkerBackend("default", {"QUEUES": ["default"]})
    backend.validate_task(tasks.add)
    assert list(backend.check()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queue_name": "a b"}, "queue_name='a b'"),
        ({"priority": 101}, "between -100 and 100"),
        ({"run_after": dt.datetime(2026, 1, 1)}, "aware"),
    ],
)
def test_a_task_that_cannot_be_enqueued_is_refused_when_it_is_made(change, message):
    with pytest.raises(InvalidTask, match=message):
        tasks.add.using(**change)
