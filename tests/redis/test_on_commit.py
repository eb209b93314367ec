"""Pushes inside transactions: they wait for the commits, vanish with a rollback, and never break a commit."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from asgiref.sync import async_to_sync
from django.db import connections, transaction
from django.test import override_settings

from django_cogworker import Job, job
from django_cogworker.client import apush, push, push_bulk
from django_cogworker.exceptions import ArgumentError, ConfigurationError, PayloadTooLarge
from django_cogworker.signals import job_enqueued, job_push_failed

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "other"])

QUEUE = "cogworker:queue:default"


class Plain(Job):
    def perform(self, *args: Any) -> None: ...


class ForOther(Job, on_commit="other"):
    def perform(self, *args: Any) -> None: ...


class AtOnce(Job, on_commit=False):
    def perform(self, *args: Any) -> None: ...


class Always(Job, on_commit=True):
    def perform(self, *args: Any) -> None: ...


@job
def function(*args: Any) -> None: ...


@pytest.fixture
def pushed(redis_client: redis.Redis) -> Callable[[], list[Any]]:
    """First arguments of all jobs in Redis, those that are scheduled last."""

    def get() -> list[Any]:
        every: list[Any] = redis_client.lrange(QUEUE, 0, -1)[::-1]
        every += redis_client.zrange("cogworker:schedule", 0, -1)
        return [json.loads(each)["args"][0] for each in every]

    return get


@contextlib.contextmanager
def rolled_back(using: str = "default") -> Iterator[None]:
    with contextlib.suppress(ZeroDivisionError), transaction.atomic(using):
        yield
        raise ZeroDivisionError


WAYS: list[tuple[str, Callable[[], Any]]] = [
    ("perform_async", lambda: Plain.perform_async(1)),
    ("perform_in", lambda: Plain.perform_in(60, 1)),
    ("perform_at", lambda: Plain.perform_at(4e9, 1)),
    ("perform_bulk", lambda: Plain.perform_bulk([(1,)])[0]),
    ("set", lambda: Plain.set(retry=1).perform_async(1)),
    ("function", lambda: function.perform_async(1)),
    ("aperform_async", lambda: async_to_sync(Plain.aperform_async)(1)),
    ("aperform_in", lambda: async_to_sync(Plain.aperform_in)(60, 1)),
    ("aperform_at", lambda: async_to_sync(Plain.aperform_at)(4e9, 1)),
    ("aperform_bulk", lambda: async_to_sync(Plain.aperform_bulk)([(1,)])[0]),
    ("push", lambda: push({"class": "x", "args": [1]})),
    ("push_bulk", lambda: push_bulk([{"class": "x", "args": [1]}])[0]),
    ("apush", lambda: async_to_sync(apush)({"class": "x", "args": [1]})),
]


@pytest.mark.parametrize(("name", "enqueue"), WAYS, ids=[name for name, _ in WAYS])
class TestEveryWayObeysIt:
    """RQ-11, CE-10"""

    def test_it_waits_for_the_commit_and_returns_its_jid_at_once(self, pushed, name, enqueue):
        with transaction.atomic():
            jid = enqueue()
            assert len(jid) == 24
            with transaction.atomic():
                enqueue()
            assert pushed() == []
        assert pushed() == [1, 1]

    def test_after_a_rollback_nothing_is_pushed(self, pushed, name, enqueue):
        with rolled_back():
            enqueue()
            with transaction.atomic():
                enqueue()
        assert pushed() == []

    def test_outside_a_transaction_it_is_pushed_at_once(self, pushed, name, enqueue):
        enqueue()
        assert pushed() == [1]

    def test_the_setting_switches_it_off(self, pushed, name, enqueue):
        with override_settings(COGWORKER_ENQUEUE_ON_COMMIT=False), rolled_back():
            enqueue()
            assert pushed() == [1]


class TestOneDatabase:
    def test_an_inner_rollback_takes_only_its_own_jobs(self, pushed):
        with transaction.atomic():
            Plain.perform_async(1)
            with rolled_back():
                Plain.perform_async(2)
            with transaction.atomic():
                Plain.perform_async(3)
        assert pushed() == [1, 3]

    def test_the_order_of_the_calls_is_kept(self, pushed):
        with transaction.atomic():
            Plain.perform_async(1)
            Plain.perform_bulk([(2,), (3,)])
            with transaction.atomic():
                Plain.perform_async(4)
            Plain.perform_async(5)
        assert pushed() == [1, 2, 3, 4, 5]

    def test_a_bulk_of_several_slices_waits_whole(self, pushed):
        with transaction.atomic():
            Plain.perform_bulk([(n,) for n in range(2500)])
            assert pushed() == []
        assert pushed() == list(range(2500))
        with rolled_back():
            Plain.perform_bulk([(n,) for n in range(2500)])
        assert len(pushed()) == 2500

    def test_the_option_decides_over_the_setting(self, pushed):
        with rolled_back():
            AtOnce.perform_async(1)
            Plain.set(on_commit=False).perform_async(2)
            assert pushed() == [1, 2]
        with override_settings(COGWORKER_ENQUEUE_ON_COMMIT=False), rolled_back():
            Always.perform_async(3)
            Plain.set(on_commit=True).perform_async(4)
        assert pushed() == [1, 2]

    def test_errors_come_at_the_call_not_at_the_commit(self, pushed):
        with transaction.atomic():
            with pytest.raises(ArgumentError):
                Plain.perform_async(object())
            with pytest.raises(PayloadTooLarge):
                Plain.perform_async("x" * 1_000_001)
        assert pushed() == []

    def test_the_arguments_are_taken_at_the_call(self, redis_client):
        data = ["before"]
        with transaction.atomic():
            Plain.perform_async(data)
            data.append("after")
        assert json.loads(redis_client.lindex(QUEUE, 0))["args"] == [["before"]]

    def test_enqueued_at_is_the_time_of_the_commit(self, redis_client):
        with transaction.atomic():
            Plain.perform_async(1)
            Plain.perform_async(2)
        last = json.loads(redis_client.lindex(QUEUE, 0))
        assert last["enqueued_at"] > last["created_at"]

    def test_a_job_may_be_enqueued_by_a_commit_hook(self, pushed):
        with transaction.atomic():
            transaction.on_commit(lambda: Plain.perform_async(1) and None)
            Plain.perform_async(2)
        assert sorted(pushed()) == [1, 2]

    def test_the_signal_is_sent_after_the_commit(self, redis_url):
        heard: list[Any] = []

        def receiver(jid: str, **kwargs: Any) -> None:
            heard.append((jid, connections["default"].in_atomic_block))

        job_enqueued.connect(receiver)
        try:
            with transaction.atomic():
                jid = Plain.perform_async(1)
                assert heard == []
        finally:
            job_enqueued.disconnect(receiver)
        assert heard == [(jid, False)]


class TestTwoDatabases:
    @pytest.mark.parametrize(("outer", "inner"), [("default", "other"), ("other", "default")])
    def test_a_push_waits_until_no_database_is_inside_a_transaction(self, pushed, outer, inner):
        with transaction.atomic(outer):
            with transaction.atomic(inner):
                Plain.perform_async(1)
            assert pushed() == []
        assert pushed() == [1]

    @pytest.mark.parametrize("first", ["default", "other"])
    def test_overlapping_transactions(self, pushed, first):
        """The one that was opened first commits first."""
        second = "other" if first == "default" else "default"
        early, late = transaction.atomic(first), transaction.atomic(second)
        early.__enter__()
        late.__enter__()
        Plain.perform_async(1)
        early.__exit__(None, None, None)
        assert pushed() == []
        late.__exit__(None, None, None)
        assert pushed() == [1]

    @pytest.mark.parametrize("lost", ["default", "other"])
    @pytest.mark.parametrize("outer", ["default", "other"])
    def test_a_rollback_of_either_drops_the_push(self, pushed, outer, lost):
        inner = "other" if outer == "default" else "default"
        blocks = {lost: rolled_back(lost)}
        kept = inner if lost == outer else outer
        blocks[kept] = transaction.atomic(kept)  # type: ignore[assignment]
        with blocks[outer], blocks[inner]:
            Plain.perform_async(1)
        assert pushed() == []
        Plain.perform_async(2)
        assert pushed() == [2]

    def test_a_transaction_opened_after_the_call_is_waited_for_too(self, pushed):
        early, late = transaction.atomic("default"), transaction.atomic("other")
        early.__enter__()
        Plain.perform_async(1)
        late.__enter__()
        early.__exit__(None, None, None)
        assert pushed() == []
        late.__exit__(None, None, None)
        assert pushed() == [1]

    def test_the_named_database_alone_counts(self, pushed):
        with transaction.atomic("default"):
            with transaction.atomic("other"):
                ForOther.perform_async(1)
                Plain.set(on_commit="other").perform_async(2)
                assert pushed() == []
            assert pushed() == [1, 2]
            ForOther.perform_async(3)
            assert pushed() == [1, 2, 3]
        with transaction.atomic("default"), rolled_back("other"):
            ForOther.perform_async(4)
        assert pushed() == [1, 2, 3]
        with rolled_back("default"), transaction.atomic("other"):
            ForOther.perform_async(5)
        assert pushed() == [1, 2, 3, 5]

    def test_an_unknown_database_is_an_error_at_the_call(self, pushed):
        for enqueue in (
            lambda: Plain.set(on_commit="no_such").perform_async(1),
            lambda: push({"class": "x", "args": [1]}, on_commit="no_such"),
        ):
            with pytest.raises(ConfigurationError, match="'no_such'.*DATABASES"):
                enqueue()
        assert pushed() == []

    def test_the_low_level_push_takes_it_too(self, pushed):
        with rolled_back("default"):
            push({"class": "x", "args": [1]}, on_commit=False)
            push({"class": "x", "args": [2]}, on_commit="other")
            push_bulk([{"class": "x", "args": [3]}], on_commit=True)
        assert pushed() == [1, 2]


class TestPushAfterTheCommitFails:
    @pytest.fixture(autouse=True)
    def _less_patience(self, monkeypatch):
        monkeypatch.setattr("django_cogworker.client.transport.PATIENCE", 0.2)

    @pytest.fixture
    def failures(self) -> Iterator[list[dict[str, Any]]]:
        heard: list[dict[str, Any]] = []

        def receiver(**kwargs: Any) -> None:
            heard.append(kwargs)

        job_push_failed.connect(receiver)
        yield heard
        job_push_failed.disconnect(receiver)

    def test_other_hooks_run_and_the_payload_is_logged_and_signalled(
        self, make_redis_server, failures, caplog
    ):
        ran: list[str] = []
        server = make_redis_server()
        with override_settings(COGWORKER_REDIS=server.url), caplog.at_level(logging.INFO):
            Plain.perform_async(0)
            server.stop()
            with transaction.atomic():
                transaction.on_commit(lambda: ran.append("before"))
                jid = Plain.perform_async("precious")
                transaction.on_commit(lambda: ran.append("between"))
                many = Plain.perform_bulk([("many",), ("more",)])
                transaction.on_commit(lambda: ran.append("after"))
        assert ran == ["before", "between", "after"]
        assert [each["jid"] for each in failures] == [jid, *many]
        assert failures[0]["sender"] is Plain
        assert failures[0]["payload"]["args"] == ["precious"]
        assert "could not be enqueued" in str(failures[0]["error"])
        errors = [each for each in caplog.records if each.levelname == "ERROR"]
        assert len(errors) == 3
        assert "precious" in errors[0].getMessage()
        assert str(jid) in errors[0].getMessage()

    def test_a_queue_of_the_wrong_type_costs_only_its_own_jobs(
        self, redis_client, pushed, failures, caplog
    ):
        redis_client.set("cogworker:queue:bad", "not ours")
        with transaction.atomic():
            Plain.perform_async(1)
            bad = Plain.set(queue="bad").perform_async(2)
            mixed = push_bulk(
                [{"class": "x", "args": [3]}, {"class": "x", "queue": "bad", "args": [4]}]
            )
            Plain.perform_async(5)
        assert pushed() == [1, 3, 5]
        assert [each["jid"] for each in failures] == [bad, mixed[1]]
        assert caplog.text.count("WRONGTYPE") >= 2

    def test_a_broken_receiver_breaks_no_commit(self, failures, caplog):
        def receiver(**kwargs: Any) -> None:
            raise ZeroDivisionError

        job_push_failed.connect(receiver)
        try:
            with override_settings(COGWORKER_REDIS="redis://127.0.0.1:1/0"), transaction.atomic():
                Plain.perform_async(1)
        finally:
            job_push_failed.disconnect(receiver)
        assert len(failures) == 1
        assert "ZeroDivisionError" in caplog.text

    def test_a_short_outage_at_the_commit_is_waited_out(
        self, make_proxy, redis_client, redis_url, pushed, failures, monkeypatch
    ):
        monkeypatch.setattr("django_cogworker.client.transport.PATIENCE", 5.0)
        proxy = make_proxy(redis_url)
        with override_settings(COGWORKER_REDIS=proxy.url):
            Plain.perform_async(0)
            with transaction.atomic():
                Plain.perform_async(1)
                proxy.lose_reply(b"EVAL", times=2)
        assert pushed() == [0, 1]
        assert failures == []
