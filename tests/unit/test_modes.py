"""The test modes: fake, inline, disabled, by setting and by context manager, inside and outside transactions."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import threading
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase, override_settings
from django.utils import timezone, translation

from django_cogworker import Job, current_job, job
from django_cogworker.client import push
from django_cogworker.exceptions import EmptyQueueError, PushError, TestModeError
from django_cogworker.signals import job_enqueued
from django_cogworker.testing import (
    assert_enqueued,
    assert_not_enqueued,
    clear_all,
    disabled,
    drain_all,
    fake,
    inline,
)

#: What the jobs below did, in order.
done: list[Any] = []


@pytest.fixture(autouse=True)
def _start_with_nothing_done():
    done.clear()


class Plain(Job):
    def perform(self, *args: Any, **kwargs: Any) -> Any:
        done.append(args)
        return args


class Other(Job, queue="other"):
    def perform(self, *args: Any) -> None:
        done.append(("other", *args))


class CountDown(Job):
    """Pushes itself until it is at 0."""

    def perform(self, number: int) -> None:
        done.append(number)
        if number:
            CountDown.perform_async(number - 1)
            Other.perform_async(number)


class Failing(Job):
    def perform(self, kind: str = "ValueError") -> None:
        done.append("failing")
        raise {"ValueError": ValueError, "SystemExit": SystemExit}[kind]("of the job")


class Async(Job):
    async def perform(self, value: int) -> int:
        await asyncio.sleep(0)
        done.append((value, current_job().jid == self.jid))
        return value


class MakeGroup(Job):
    def perform(self, name: str) -> None:
        Group.objects.create(name=name)


class AsyncMakeGroup(Job):
    async def perform(self, name: str) -> None:
        await Group.objects.acreate(name=name)


class Meddle(Job):
    """Leaves language and time zone changed, as a careless job does."""

    def perform(self) -> tuple[str, str]:
        translation.activate("fr")
        timezone.activate("Asia/Tokyo")
        return translation.get_language(), timezone.get_current_timezone_name()


@job
def function(value: int) -> int:
    done.append(value)
    return value


def fails_without_redis() -> None:
    """Disabled means the real Redis; the tests' address leads nowhere."""
    with pytest.raises(PushError):
        Plain.perform_async()


@pytest.fixture
def no_patience(monkeypatch):
    monkeypatch.setattr("django_cogworker.client.transport.PATIENCE", 0.0)


# -- which mode counts


@pytest.mark.usefixtures("no_patience")
class TestChoice:
    def test_the_default_goes_to_redis(self):
        """O222"""
        fails_without_redis()

    def test_the_setting(self):
        with override_settings(COGWORKER_TESTING="fake"):
            Plain.perform_async(1)
            assert len(Plain.jobs) == 1
        with override_settings(COGWORKER_TESTING="inline"):
            Plain.perform_async(2)
        assert done == [(2,)]
        fails_without_redis()

    def test_each_use_of_the_setting_begins_empty(self):
        with override_settings(COGWORKER_TESTING="fake"):
            Plain.perform_async(1)
        with override_settings(COGWORKER_TESTING="fake"):
            assert Plain.jobs == []

    def test_context_managers_nest_and_the_innermost_counts(self):
        with fake():
            Plain.perform_async(1)
            with inline():
                Plain.perform_async(2)
                with disabled():
                    fails_without_redis()
                with fake():
                    assert Plain.jobs == []
                    Plain.perform_async(3)
                Plain.perform_async(4)
            assert [each["args"] for each in Plain.jobs] == [[1]]
        assert done == [(2,), (4,)]
        fails_without_redis()

    def test_they_win_over_the_setting(self):
        with override_settings(COGWORKER_TESTING="inline"):
            with fake():
                Plain.perform_async(1)
                assert len(Plain.jobs) == 1
            with disabled():
                fails_without_redis()
            Plain.perform_async(2)
        assert done == [(2,)]

    @pytest.mark.parametrize("mode", [fake, inline, disabled])
    def test_the_mode_before_comes_back_after_an_error_too(self, mode):
        with contextlib.suppress(ZeroDivisionError), mode():
            raise ZeroDivisionError
        fails_without_redis()

    def test_they_may_decorate_a_test(self):
        @fake()
        def test() -> int:
            Plain.perform_async()
            return len(Plain.jobs)

        assert test() == test() == 1

    def test_they_count_in_all_threads(self):
        with fake():
            thread = threading.Thread(target=Plain.perform_async, args=(1,))
            thread.start()
            thread.join()
            assert len(Plain.jobs) == 1


@pytest.mark.parametrize("mode", [disabled, inline])
@pytest.mark.parametrize(
    "helper",
    [
        lambda: Plain.jobs,
        lambda: Plain.clear(),
        lambda: Plain.perform_one(),
        lambda: Plain.drain(),
        lambda: function.jobs,
        lambda: function.clear(),
        lambda: function.perform_one(),
        lambda: function.drain(),
        drain_all,
        clear_all,
        lambda: assert_enqueued(Plain),
        lambda: assert_not_enqueued(Plain),
    ],
    ids=[
        "jobs",
        "clear",
        "perform_one",
        "drain",
        "function.jobs",
        "function.clear",
        "function.perform_one",
        "function.drain",
        "drain_all",
        "clear_all",
        "assert_enqueued",
        "assert_not_enqueued",
    ],
)
def test_helpers_of_fake_mode_say_so_outside_it(mode, helper):
    with mode(), pytest.raises(TestModeError, match="works in fake mode only"):
        helper()


# -- fake


class TestFake:
    def test_jobs_are_collected_oldest_first_by_class_and_nothing_runs(self):
        with fake() as transport:
            Plain.perform_async(1)
            Other.perform_async(2)
            Plain.perform_in(60, 3)
            Plain.perform_bulk([(4,), (5,)])
            function.perform_async(6)
            assert [each["args"] for each in Plain.jobs] == [[1], [3], [4], [5]]
            assert [each["args"] for each in Other.jobs] == [[2]]
            assert [each["args"] for each in function.jobs] == [[6]]
            assert len(transport.jobs()) == 6
            assert "at" in Plain.jobs[1]
        assert done == []

    def test_perform_one_runs_the_oldest_and_removes_it(self):
        """O224"""
        with fake():
            Plain.perform_async(1)
            Other.perform_async(2)
            Plain.perform_async(3)
            assert Plain.perform_one() == (1,)
            assert [each["args"] for each in Plain.jobs] == [[3]]
            assert Plain.perform_one() == (3,)
            with pytest.raises(EmptyQueueError, match=rf"{__name__}.Plain"):
                Plain.perform_one()
            assert len(Other.jobs) == 1

    def test_perform_one_of_any_class(self):
        with fake() as transport:
            Plain.perform_async(1)
            Other.perform_async(2)
            transport.perform_one()
            transport.perform_one()
            with pytest.raises(EmptyQueueError, match="any class"):
                transport.perform_one()
        assert done == [(1,), ("other", 2)]

    def test_drain_runs_what_jobs_push_too(self):
        """O225"""
        with fake():
            CountDown.perform_async(3)
            assert CountDown.drain() == 4
            assert done == [3, 2, 1, 0]
            assert len(Other.jobs) == 3
            assert CountDown.drain() == 0

    def test_drain_all_covers_every_class(self):
        """O225"""
        with fake() as transport:
            CountDown.perform_async(2)
            function.perform_async(7)
            assert drain_all() == 6
            assert transport.jobs() == []
        assert done == [2, 7, 1, ("other", 2), 0, ("other", 1)]

    def test_clear_and_clear_all(self):
        with fake() as transport:
            Plain.perform_async()
            Other.perform_async()
            Plain.clear()
            assert Plain.jobs == []
            assert len(Other.jobs) == 1
            clear_all()
            assert transport.jobs() == []

    def test_delayed_jobs_run_when_drained(self):
        with fake():
            Plain.perform_in(3600, 1)
            assert Plain.drain() == 1
        assert done == [(1,)]

    @pytest.mark.parametrize(
        ("kind", "error"), [("ValueError", ValueError), ("SystemExit", SystemExit)]
    )
    def test_an_error_reaches_the_test_and_the_job_is_gone(self, kind, error):
        with fake():
            Failing.perform_async(kind)
            Failing.perform_async(kind)
            with pytest.raises(error, match="of the job"):
                Failing.perform_one()
            with pytest.raises(error):
                Failing.drain()
            assert Failing.jobs == []

    def test_coroutines(self):
        with fake():
            Async.perform_async(1)
            assert Async.perform_one() == 1
        assert done == [(1, True)]

    def test_from_coroutines(self):
        async def test() -> None:
            await Plain.aperform_async(1)
            await Plain.aperform_in(5, 2)
            await Plain.aperform_at(timezone.now(), 3)
            await Plain.aperform_bulk([(4,), (5,)])
            await Async.set(queue="x").aperform_async(6)
            assert len(Plain.jobs) == 5
            assert_enqueued(Async, queue="x")
            assert await sync_to_async(drain_all)() == 6

        with fake():
            asyncio.run(test())
        assert done == [(1,), (2,), (3,), (4,), (5,), (6, True)]

    def test_the_signal_is_sent(self):
        heard: list[Any] = []

        def receiver(sender: Any, jid: str, payload: dict[str, Any], **kwargs: Any) -> None:
            heard.append((sender, jid, payload["args"]))

        job_enqueued.connect(receiver)
        try:
            with fake():
                jids = [
                    Plain.perform_async(1),
                    *Plain.perform_bulk([(2,)]),
                    function.perform_async(3),
                ]
                jids.append(push({"class": "unknown.Class"}))
        finally:
            job_enqueued.disconnect(receiver)
        assert heard == [
            (Plain, jids[0], [1]),
            (Plain, jids[1], [2]),
            (function, jids[2], [3]),
            (None, jids[3], []),
        ]

    def test_a_broken_receiver_hinders_no_push(self, caplog):
        def receiver(**kwargs: Any) -> None:
            raise ZeroDivisionError

        def abrupt(**kwargs: Any) -> None:
            raise SystemExit

        job_enqueued.connect(receiver)
        job_enqueued.connect(abrupt)
        try:
            with fake():
                assert Plain.perform_async(1)
                assert len(Plain.jobs) == 1
        finally:
            job_enqueued.disconnect(receiver)
            job_enqueued.disconnect(abrupt)
        assert "job_enqueued" in caplog.text

    def test_language_and_time_zone_stay_the_tests_own(self):
        with fake(), translation.override("de"), timezone.override("Europe/Paris"):
            Meddle.perform_async()
            assert Meddle.perform_one() == ("fr", "Asia/Tokyo")
            assert translation.get_language() == "de"
            assert timezone.get_current_timezone_name() == "Europe/Paris"


class TestAssertions:
    WHEN = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)

    @pytest.fixture(autouse=True)
    def _jobs(self):
        with fake():
            Plain.perform_async(1, (2, {"x"}), name=dt.datetime.min)
            Plain.set(queue="high").perform_at(self.WHEN, 1)
            yield

    @pytest.mark.parametrize(
        ("asked", "count"),
        [
            ({}, 2),
            ({"args": (1,)}, 1),
            ({"args": [1, (2, {"x"})]}, 1),
            ({"args": (1, [2, {"x"}])}, 0),
            ({"args": ()}, 0),
            ({"kwargs": {"name": dt.datetime.min}}, 1),
            ({"kwargs": {}}, 1),
            ({"queue": "high"}, 1),
            ({"queue": "default"}, 1),
            ({"queue": "no"}, 0),
            ({"at": WHEN}, 1),
            ({"at": WHEN.timestamp() + 0.9}, 1),
            ({"at": WHEN.timestamp() + 1.1}, 0),
            ({"at": WHEN, "queue": "default"}, 0),
            ({"at": WHEN, "queue": "high", "args": (1,), "kwargs": {}}, 1),
        ],
    )
    def test_what_fits(self, asked, count):
        if count:
            assert len(assert_enqueued(Plain, **asked)) == count
            with pytest.raises(AssertionError, match=f"{count} fitting jobs, wanted none"):
                assert_not_enqueued(Plain, **asked)
        else:
            assert_not_enqueued(Plain, **asked)
            with pytest.raises(AssertionError, match="0 fitting jobs, wanted at least one"):
                assert_enqueued(Plain, **asked)
        assert len(assert_enqueued(Plain, **asked, count=count)) == count
        with pytest.raises(AssertionError, match=f"wanted {count + 1}"):
            assert_enqueued(Plain, **asked, count=count + 1)

    def test_a_failure_shows_what_was_asked_for_and_what_waits(self):
        with pytest.raises(AssertionError) as caught:
            assert_enqueued(Plain, args=(99,), queue="low")
        text = str(caught.value)
        assert "with args=(99,), queue='low'" in text
        assert "args=[1, (2, {'x'})]" in text
        assert "queue='high'" in text

    def test_none_waiting(self):
        assert_not_enqueued(Other)
        with pytest.raises(AssertionError, match="Waiting: none"):
            assert_enqueued(Other)
        assert assert_enqueued(Other, count=0) == []

    def test_many_waiting_are_not_all_listed(self):
        Other.perform_bulk([(n,) for n in range(100)])
        with pytest.raises(AssertionError, match="and 90 more"):
            assert_enqueued(Other, args=("none",))

    def test_functions_and_low_level_pushes(self):
        push({"class": function, "args": [5], "at": None})
        assert_enqueued(function, args=(5,))
        assert_not_enqueued(function, at=self.WHEN)


# -- inline


class TestInline:
    def test_jobs_run_at_once_and_delays_are_ignored(self):
        """O226"""
        with inline():
            assert Plain.perform_async(1)
            Plain.perform_in(3600, 2)
            Plain.perform_at(timezone.now() + dt.timedelta(days=1), 3)
            assert len(Plain.perform_bulk([(4,), (5,)])) == 2
            function.perform_async(6)
        assert done == [(1,), (2,), (3,), (4,), (5,), 6]

    @pytest.mark.parametrize(
        ("kind", "error"), [("ValueError", ValueError), ("SystemExit", SystemExit)]
    )
    def test_an_error_reaches_the_caller(self, kind, error):
        """O226"""
        with inline():
            with pytest.raises(error, match="of the job"):
                Failing.perform_async(kind)
            with pytest.raises(error):
                Failing.perform_bulk([(kind,), (kind,)])
        assert done == ["failing"] * 2

    def test_jobs_push_jobs(self):
        with inline():
            CountDown.perform_async(2)
        assert done == [2, 1, 0, ("other", 1), ("other", 2)]

    def test_coroutines_from_synchronous_code(self):
        with inline():
            Async.perform_async(1)
        assert done == [(1, True)]

    @pytest.mark.parametrize("cls", [Async, function])
    def test_from_coroutines(self, cls):
        async def test() -> None:
            await cls.aperform_async(1)
            await cls.aperform_in(60, 2)
            await cls.aperform_bulk([(3,)])

        with inline():
            asyncio.run(test())
        assert [each[0] if isinstance(each, tuple) else each for each in done] == [1, 2, 3]

    def test_arguments_are_encoded_as_in_production(self):
        with inline(), pytest.raises(TypeError, match="args"):
            Plain.perform_async(object())

    def test_each_job_has_its_own_copy_of_its_arguments(self):
        data = [1]
        with inline():
            Plain.perform_async(data)
        assert done[0][0] == data
        assert done[0][0] is not data


# -- transactions


class TestInsideTestCase(TestCase):
    """CE-11, DR-7, DT-9: a transaction that never commits is around everything."""

    def test_pushes_that_wait_for_the_commit_are_seen(self):
        with fake():
            Plain.perform_async(1)
            with transaction.atomic():
                Plain.perform_in(5, 2)
                Plain.perform_bulk([(3,), (4,)])
                assert [each["args"] for each in Plain.jobs] == [[1], [2], [3], [4]]
            assert_enqueued(Plain, count=4)
            assert_enqueued(Plain, args=(3,))
            assert Plain.perform_one() == (1,)
            assert Plain.drain() == 3
            assert_not_enqueued(Plain)

    def test_clear_forgets_them(self):
        with fake():
            Plain.perform_async(1)
            Other.perform_async(2)
            Plain.clear()
            assert Plain.jobs == []
            assert len(Other.jobs) == 1
            clear_all()
            assert drain_all() == 0

    def test_jobs_use_the_tests_transaction(self):
        Group.objects.create(name="of the test")
        with fake():
            MakeGroup.perform_async("of the job")
            MakeGroup.drain()
        with inline():
            MakeGroup.perform_async("inline")
        assert connection.in_atomic_block
        assert Group.objects.count() == 3

    def test_jobs_that_jobs_push_are_drained_too(self):
        with fake():
            CountDown.perform_async(3)
            assert drain_all() == 7

    def test_a_rolled_back_block_takes_its_jobs_along(self):
        with fake():
            Plain.perform_async(1)
            with contextlib.suppress(ZeroDivisionError), transaction.atomic():
                Plain.perform_async(2)
                with transaction.atomic():
                    Plain.perform_async(3)
                assert_enqueued(Plain, count=3)
                raise ZeroDivisionError
            assert [each["args"] for each in Plain.jobs] == [[1]]

    def test_a_rolled_back_savepoint_takes_its_jobs_along(self):
        with fake(), transaction.atomic():
            Plain.perform_async(1)
            with contextlib.suppress(ZeroDivisionError), transaction.atomic():
                Plain.perform_async(2)
                raise ZeroDivisionError
            Plain.perform_async(3)
            assert [each["args"] for each in Plain.jobs] == [[1], [3]]

    def test_captured_commits_push_once(self):
        """`captureOnCommitCallbacks` runs the hooks while the test's own transaction is open."""
        with fake() as transport:
            with self.captureOnCommitCallbacks(execute=True) as callbacks:
                Plain.perform_async(1)
                with transaction.atomic():
                    Plain.perform_async(2)
            assert len(callbacks) == 2
            assert [each["args"] for each in transport.jobs()] == [[1], [2]]
            assert connection.run_on_commit[2:] == []
            assert Plain.drain() == 2
            assert Plain.drain() == 0

    def test_a_hook_that_runs_after_the_job_was_drained_pushes_nothing(self):
        with fake() as transport:
            with self.captureOnCommitCallbacks() as callbacks:
                Plain.perform_async(1)
                Plain.drain()
            callbacks[0]()
            assert transport.jobs() == []

    def test_on_commit_false_does_not_wait(self):
        with fake():
            with self.captureOnCommitCallbacks() as callbacks:
                Plain.set(on_commit=False).perform_async(1)
            assert callbacks == []
            assert_enqueued(Plain, count=1)

    def test_inline_runs_at_once_inside_a_transaction(self):
        with inline(), transaction.atomic():
            Plain.perform_async(1)
            assert done == [(1,)]

    def test_coroutines_in_both_modes(self):
        with fake():
            AsyncMakeGroup.perform_async("fake")
            AsyncMakeGroup.drain()
        with inline():
            AsyncMakeGroup.perform_async("inline")
        assert Group.objects.count() == 2

    def test_other_threads_transactions_are_not_ours(self):
        found: list[Any] = []
        with fake():
            Plain.perform_async(1)
            thread = threading.Thread(target=lambda: found.extend(Plain.jobs))
            thread.start()
            thread.join()
        assert found == []

    async def test_from_an_asynchronous_test(self):
        with fake():
            await Plain.aperform_async(1)
            assert_enqueued(Plain, args=(1,))
            assert len(Plain.jobs) == 1
            await sync_to_async(Plain.perform_async)(2)
            assert await sync_to_async(Plain.drain)() == 2
            await AsyncMakeGroup.aperform_async("x")
            await sync_to_async(drain_all)()
            assert await Group.objects.acount() == 1

    async def test_inline_from_an_asynchronous_test(self):
        with inline():
            await MakeGroup.aperform_async("a")
            await AsyncMakeGroup.aperform_async("b")
        assert await Group.objects.acount() == 2


class TestInsideTestCaseOfTwoDatabases(TestCase):
    databases = {"default", "other"}  # noqa: RUF012

    def test_pushes_that_wait_for_both_are_seen_once(self):
        with fake():
            Plain.perform_async(1)
            assert_enqueued(Plain, count=1)
            assert Plain.drain() == 1

    def test_captured_commits_of_both_push_once(self):
        with fake() as transport:
            with (
                self.captureOnCommitCallbacks(using="other", execute=True),
                self.captureOnCommitCallbacks(using="default", execute=True),
            ):
                Plain.perform_async(1)
            assert len(transport.jobs()) == 1


class TestWithRealCommits(TransactionTestCase):
    def test_a_commit_hands_the_jobs_over(self):
        with fake() as transport:
            with transaction.atomic():
                Plain.perform_async(1)
                assert len(Plain.jobs) == 1
            assert len(transport.jobs()) == 1
            assert "enqueued_at" in Plain.jobs[0]
            with contextlib.suppress(ZeroDivisionError), transaction.atomic():
                Plain.perform_async(2)
                raise ZeroDivisionError
            assert Plain.drain() == 1
        assert done == [(1,)]

    def test_an_async_caller_inside_a_synchronous_transaction_waits_with_it(self):
        """The twins run in the thread whose transaction it is."""
        with fake() as transport:
            with contextlib.suppress(ZeroDivisionError), transaction.atomic():
                async_to_sync(Plain.aperform_async)(1)
                assert len(Plain.jobs) == 1
                raise ZeroDivisionError
            assert transport.jobs() == []
            with transaction.atomic():
                async_to_sync(Plain.aperform_bulk)([(1,), (2,)])
                assert len(Plain.jobs) == 2
            assert Plain.drain() == 2
