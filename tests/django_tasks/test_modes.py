"""Tasks in the test modes: no Redis, and the same signals and results."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction

from django_cogworker.exceptions import TestModeError
from django_cogworker.tasks.compat import (
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from django_cogworker.testing import (
    assert_enqueued,
    assert_not_enqueued,
    drain_all,
    fake,
    inline,
)
from tests.tasked import tasks

BACKEND: Any = task_backends["default"]


@pytest.fixture
def signals() -> Any:
    """What was told, in order: the signal, and what the result said then and what it said when asked again."""
    told: list[tuple[str, str, str]] = []
    receivers = []
    for name, signal in (
        ("enqueued", task_enqueued),
        ("started", task_started),
        ("finished", task_finished),
    ):

        def receive(task_result: Any, name: str = name, **kwargs: Any) -> None:
            again = BACKEND.get_result(task_result.id)
            told.append((name, str(task_result.status), str(again.status)))

        signal.connect(receive)
        receivers.append((signal, receive))
    yield told
    for signal, receive in receivers:
        signal.disconnect(receive)


def test_fake_mode_collects_and_runs_when_asked(journal, signals):
    with fake():
        first = tasks.add.enqueue(1)
        tasks.add.using(queue_name="mail").enqueue(2)
        assert [each.args for each in BACKEND.results] == [[1], [2]]
        assert BACKEND.results[0] == first
        assert drain_all() == 2
        first.refresh()
        assert (first.status, first.return_value) == (TaskResultStatus.SUCCESSFUL, 1)
        assert (first.attempts, first.started_at is not None) == (1, True)
        BACKEND.clear()
        assert BACKEND.results == []
        with pytest.raises(TaskResultDoesNotExist):
            first.refresh()
    assert signals == [
        ("enqueued", "READY", "READY"),
        ("enqueued", "READY", "READY"),
        ("started", "RUNNING", "RUNNING"),
        ("finished", "SUCCESSFUL", "SUCCESSFUL"),
        ("started", "RUNNING", "RUNNING"),
        ("finished", "SUCCESSFUL", "SUCCESSFUL"),
    ]


def test_assertions_take_tasks():
    with fake():
        tasks.add.using(queue_name="mail").enqueue(1, right=2)
        assert_enqueued(tasks.add, args=(1,), kwargs={"right": 2}, queue="mail", count=1)
        assert_not_enqueued(tasks.nests)


def test_clear_forgets_what_waits_too():
    with fake() as transport:
        tasks.add.enqueue(1)
        BACKEND.clear()
        assert transport.jobs() == []


def test_a_failed_task_tells_its_error_to_whoever_drains():
    with fake():
        result = tasks.fail.enqueue()
        with pytest.raises(ValueError, match="it fails"):
            drain_all()
        result.refresh()
        assert result.status == TaskResultStatus.FAILED
        assert result.errors[0].traceback.endswith("ValueError: it fails\n")


@pytest.mark.django_db
def test_fake_mode_sees_tasks_that_wait_for_a_commit(journal):
    with fake(), transaction.atomic():
        result = tasks.add.enqueue(1)
        assert [each.id for each in BACKEND.results] == [result.id]
        assert drain_all() == 1
        result.refresh()
        assert result.is_finished


def test_inline_mode_runs_at_once_and_tells_in_order(journal, signals):
    with inline():
        result = tasks.add.enqueue(1, 2)
        assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 3)
        assert BACKEND.get_result(result.id) == result
    assert signals == [
        ("enqueued", "READY", "RUNNING"),  # it runs within the push
        ("started", "RUNNING", "RUNNING"),
        ("finished", "SUCCESSFUL", "SUCCESSFUL"),
    ]


def test_inline_a_failure_is_in_the_result_and_not_raised(signals):
    with inline():
        result = tasks.fail.enqueue()
    assert result.status == TaskResultStatus.FAILED
    assert [each.exception_class for each in result.errors] == [ValueError]
    assert signals[-1] == ("finished", "FAILED", "FAILED")


def test_inline_a_receiver_that_raises_changes_nothing(journal, caplog):
    def broken(**kwargs: Any) -> None:
        raise RuntimeError("broken")

    for signal in (task_enqueued, task_started, task_finished):
        signal.connect(broken)
    try:
        with inline():
            assert tasks.add.enqueue(1).status == TaskResultStatus.SUCCESSFUL
    finally:
        for signal in (task_enqueued, task_started, task_finished):
            signal.disconnect(broken)
    assert caplog.text.count("of a signal of django.tasks failed: RuntimeError('broken')") == 3


def test_outside_test_modes_there_is_nothing_to_look_at():
    with pytest.raises(TestModeError, match="results of a task backend works in test modes only"):
        _ = BACKEND.results
    with pytest.raises(TestModeError, match="clear of a task backend"):
        BACKEND.clear()
