"""Tasks in real workers: what becomes of them, and what their results say of it."""

from __future__ import annotations

import datetime as dt
import json
import signal
from typing import Any

import pytest
from django.utils import timezone

from django_cogworker.api import History, find_job
from django_cogworker.client import push
from django_cogworker.tasks.compat import TaskResultDoesNotExist, TaskResultStatus, task_backends
from tests.support.waiting import wait_until
from tests.tasked import letters, tasks

BACKEND: Any = task_backends["default"]


def ended(result: Any) -> Any:
    """The result, once the task has ended."""

    def look() -> bool:
        result.refresh()
        return bool(result.is_finished)

    wait_until(look, timeout=40, message=lambda: repr(BACKEND.get_result(result.id)))
    return result


def identity(worker: Any) -> str:
    name: str = worker.wait_for_line(r"works as (\S+?)[,.;:]?(?:\s|$)").group(1)
    return name


def test_a_task_runs_and_its_result_tells_all(start_tasked, journal):
    start_tasked("-c", "1")
    result = ended(tasks.add.enqueue(1, right=2))
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.return_value == 3
    assert result.errors == []
    (worker,) = result.worker_ids
    assert worker.count(":") == 2
    assert result.attempts == 1
    assert result.enqueued_at <= result.started_at == result.last_attempted_at
    assert result.started_at <= result.finished_at <= timezone.now() + dt.timedelta(seconds=1)
    assert journal.lines() == ["add 1 2"]


@pytest.mark.parametrize("where", [(), ("--async-queues", "default")])
def test_coroutines_run_in_threads_and_on_the_loop(start_tasked, where):
    start_tasked("-c", "1", *where)
    assert ended(tasks.add_later.enqueue(1, 2)).return_value == 3
    result = ended(tasks.told_later.enqueue())
    assert result.return_value == [1, result.id]
    assert ended(tasks.add.enqueue(2, 2)).return_value == 4


def test_dt3_a_task_is_retried_and_keeps_the_error_of_each_attempt(start_tasked, journal):
    """DT-3"""
    start_tasked("-c", "1", env={"COGWORKER_TEST_SIGNALS": "1"})
    result = ended(tasks.told.enqueue(2))
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.return_value == [3, result.id, result.id, "RUNNING"]
    assert [each.traceback.splitlines()[-1] for each in result.errors] == [
        "ValueError: fails 1",
        "ValueError: fails 2",
    ]
    assert {each.exception_class for each in result.errors} == {ValueError}
    assert result.attempts == 3
    assert result.started_at < result.last_attempted_at < result.finished_at
    journal.wait_for("signal finished SUCCESSFUL 2")
    assert journal.lines() == [
        "signal started RUNNING 1",
        "attempt 1 0 1",
        "signal started RUNNING 2",
        "attempt 2 1 2",
        "signal started RUNNING 3",
        "attempt 3 2 3",
        "signal finished SUCCESSFUL 2",
    ]


def test_a_task_that_waits_for_its_retry_is_ready(start_tasked, settings):
    settings.TASKS = with_options(tasks={tasks.fail.module_path: {"retry": 1}})
    start_tasked("-c", "1")
    result = tasks.fail.enqueue()
    wait_until(lambda: find_job(result.id).place == "retry")
    result.refresh()
    assert (result.status, len(result.errors), result.attempts) == (TaskResultStatus.READY, 1, 1)
    assert result.finished_at is None


def with_options(**options: Any) -> dict[str, Any]:
    backend = "django_cogworker.tasks.CogworkerBackend"
    return {"default": {"BACKEND": backend, "QUEUES": [], "OPTIONS": options}}


@pytest.mark.parametrize(
    ("name", "error", "place"),
    [
        ("fail", "builtins.ValueError", "dead"),
        ("killed", "builtins.ValueError", "dead"),
        ("discarded", "tests.tasked.tasks.Gone", ""),
        ("unserialisable", "builtins.TypeError", "dead"),
    ],
)
def test_a_task_that_fails_for_good(start_tasked, journal, name, error, place):
    """A result that JSON cannot hold fails the task, which has run and is not run again."""
    start_tasked("-c", "1", env={"COGWORKER_TEST_SIGNALS": "1"})
    result = ended(getattr(tasks, name).enqueue())
    assert result.status == TaskResultStatus.FAILED
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value
    (found,) = result.errors
    assert found.exception_class_path == error
    assert found.traceback.startswith("Traceback")
    assert result.attempts == 1
    journal.wait_for("signal finished FAILED 1")
    assert journal.count("unserialisable") <= 1
    job = find_job(result.id)
    assert (job.place if job else "") == place


def test_a_task_that_came_too_late_has_failed(start_tasked, journal):
    result = tasks.late.enqueue()
    start_tasked("-c", "1", env={"COGWORKER_TEST_SIGNALS": "1"})
    ended(result)
    assert result.status == TaskResultStatus.FAILED
    assert (result.attempts, result.started_at) == (0, None)
    assert "its time was over" in result.errors[0].traceback
    journal.wait_for("signal finished FAILED 1")


def test_hu1_a_killed_worker_loses_no_task_and_the_next_one_is_named_too(start_tasked, journal):
    """HU-1"""
    first = start_tasked("-c", "1")
    result: Any = tasks.wait.enqueue("a")
    journal.wait_for("started a")
    wait_until(lambda: BACKEND.get_result(result.id).status == TaskResultStatus.RUNNING)
    first.signal(signal.SIGKILL)
    first.wait()
    second = start_tasked("-c", "1")
    journal.wait_for("started a", times=2)
    journal.release("a")
    ended(result)
    assert result.return_value == "a"
    assert result.errors == []
    assert result.worker_ids == [identity(first), identity(second)]
    assert result.started_at < result.last_attempted_at


def test_a_task_that_kills_its_workers_fails_in_the_end(start_tasked, journal):
    conf = {"COGWORKER_MAX_ORPHANINGS": 1}
    result = tasks.wait.enqueue("a")
    for times in (1, 2):
        worker = start_tasked("-c", "1", conf=conf)
        journal.wait_for("started a", times=times, timeout=40)
        worker.signal(signal.SIGKILL)
        worker.wait()
    start_tasked("-c", "1", conf=conf, env={"COGWORKER_TEST_SIGNALS": "1"})
    ended(result)
    assert result.status == TaskResultStatus.FAILED
    assert result.attempts == 2
    (error,) = result.errors
    assert error.exception_class_path.endswith("JobOrphanedError")
    journal.wait_for("signal finished FAILED 1")


def test_a_stop_puts_the_task_back_and_the_next_run_is_counted(start_tasked, journal):
    conf = {"COGWORKER_SHUTDOWN_TIMEOUT": 0.1}
    worker = start_tasked("-c", "1", conf=conf)
    result = tasks.wait.enqueue("a")
    journal.wait_for("started a")
    assert worker.stop() == 0
    result.refresh()
    assert (result.status, result.attempts) == (TaskResultStatus.READY, 1)
    start_tasked("-c", "1", conf=conf)
    journal.wait_for("started a", times=2)
    journal.release("a")
    assert ended(result).attempts == 2


def test_a_deferred_task_runs_when_it_is_due(start_tasked):
    start_tasked("-c", "1")
    when = timezone.now() + dt.timedelta(seconds=1)
    result = ended(tasks.add.using(run_after=when).enqueue(1))
    assert result.started_at >= when - dt.timedelta(milliseconds=50)
    assert BACKEND.get_result(result.id).task.run_after == when


def test_tasks_run_in_the_order_of_their_priority(start_tasked, journal):
    """Pushed now, or scheduled and due meanwhile: the highest first, and those without one in the middle."""
    soon = timezone.now() + dt.timedelta(seconds=0.5)
    for number, priority in enumerate((-100, 0, 50, -1, 100, 0, 50)):
        tasks.add.using(priority=priority).enqueue(number, priority)
    due = tasks.add.using(priority=75, run_after=soon).enqueue(7, 75)
    worker = start_tasked("-c", "1", "-q", "first")
    wait_until(lambda: find_job(due.id).place == "queue")
    worker.stop()
    start_tasked("-c", "1")
    lines = journal.wait_for_lines(8)
    assert lines == [
        "add 4 100",
        "add 7 75",
        "add 2 50",
        "add 6 50",
        "add 1 0",
        "add 5 0",
        "add 3 -1",
        "add 0 -100",
    ]


def test_a_task_keeps_its_priority_when_it_is_tried_again(start_tasked, journal):
    worker = start_tasked("-c", "1")
    again = tasks.fail_once.using(priority=50).enqueue("a")
    wait_until(lambda: find_job(again.id).place == "retry")
    assert worker.stop() == 0
    for priority in (0, 49, 51):
        tasks.add.using(priority=priority).enqueue(1, priority)
    worker = start_tasked("-c", "1", "-q", "first")
    wait_until(lambda: find_job(again.id).place == "queue")
    worker.stop()
    start_tasked("-c", "1")
    lines = journal.wait_for_lines(5)
    assert lines == ["attempt 1 a", "add 1 51", "attempt 2 a", "add 1 49", "add 1 0"]


def test_a_task_keeps_its_priority_when_its_worker_dies(start_tasked, journal):
    worker = start_tasked("-c", "1")
    held = tasks.wait.using(priority=50).enqueue("a")
    journal.wait_for("started a")
    worker.signal(signal.SIGKILL)
    worker.wait()
    for priority in (0, 49, 50, 51):
        tasks.add.using(priority=priority).enqueue(1, priority)
    worker = start_tasked("-c", "1", "-q", "first")
    wait_until(lambda: find_job(held.id).place == "queue")
    worker.stop()
    journal.release("a")
    start_tasked("-c", "1")
    lines = journal.wait_for_lines(7)
    assert lines == [
        "started a",
        "add 1 51",
        "started a",
        "finished a",
        "add 1 50",
        "add 1 49",
        "add 1 0",
    ]


def test_a_task_outside_tasks_py_is_found_by_its_path(start_tasked, journal):
    start_tasked("-c", "1")
    assert ended(letters.write_letter.enqueue("Ada")).return_value == "Dear Ada"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("tests.tasked.letters.no_task", "No task '.*no_task' is known here"),
        ("tests.tasked.broken.anything", "it is broken"),
        ("json.dumps", "No task 'json.dumps' is known here. .*tasks.py"),
    ],
)
def test_dt5_a_path_that_is_no_task_starts_nothing(start_tasked, journal, path, reason):
    """DT-5: it waits for the deploy that knows it, and holds up nobody."""
    worker = start_tasked("-c", "1")
    jid = push({"class": path, "args": ["x"], "task": "default", "track": True})
    worker.wait_for_line(f"Job {jid} waits 30 s: .*{reason}")
    assert ended(tasks.add.enqueue(1)).return_value == 1
    assert journal.count("no task x") == 0


def test_a_job_that_is_no_task_is_never_imported(start_tasked, journal):
    worker = start_tasked("-c", "1")
    jid = push({"class": "tests.tasked.letters.write_letter", "args": ["x"]})
    worker.wait_for_line(f"Job {jid} waits 30 s")
    assert journal.lines() == []


def test_a_broken_receiver_fails_no_task(start_tasked, journal):
    worker = start_tasked("-c", "1", env={"COGWORKER_TEST_SIGNALS": "1"})
    assert ended(tasks.add.enqueue(1)).status == TaskResultStatus.SUCCESSFUL
    worker.wait_for_line("Receiver .*broken.* of a signal of django.tasks failed")
    journal.wait_for("signal finished SUCCESSFUL 0")


def test_tasks_are_found_in_the_history_by_their_own_names(start_tasked):
    start_tasked("-c", "1")
    ended(tasks.add.enqueue(1))
    wait_until(lambda: History().page(job_class="tests.tasked.tasks.add").total == 1)


def test_a_record_that_ran_out_is_begun_anew_at_the_end(start_tasked, redis_client):
    result = tasks.add.enqueue(1)
    redis_client.delete(f"cogworker:status:{result.id}")
    (raw,) = redis_client.lrange("cogworker:queue:default", 0, -1)
    payload = {**json.loads(raw), "created_at": json.loads(raw)["created_at"] - 100_000}
    redis_client.lset("cogworker:queue:default", 0, json.dumps(payload))
    with pytest.raises(TaskResultDoesNotExist):
        result.refresh()
    start_tasked("-c", "1")
    wait_until(lambda: redis_client.hget(f"cogworker:status:{result.id}", "state") == b"complete")
    assert BACKEND.get_result(result.id).return_value == 1


def test_the_result_goes_when_its_time_is_over(start_tasked, redis_client):
    start_tasked("-c", "1")
    result = ended(tasks.once.enqueue("a"))
    assert 500 < redis_client.ttl(f"cogworker:status:{result.id}") <= 600
    result = ended(tasks.add.enqueue(1))
    assert 86_000 < redis_client.ttl(f"cogworker:status:{result.id}") <= 86_400
