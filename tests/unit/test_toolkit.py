"""The toolkit beyond the plain fake mode: assertions that show what is there, locks, pauses, recorded errors, deaths
of workers, coroutines, the mixin.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import os
import unittest
from collections.abc import Iterator
from typing import Any

import django
import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test import SimpleTestCase, TestCase, TransactionTestCase, override_settings

from django_cogworker import Job, job
from django_cogworker.exceptions import EmptyQueueError, JobOrphanedError, TestModeError
from django_cogworker.signals import job_refused
from django_cogworker.testing import (
    CogworkerTestCase,
    Jobs,
    adrain_all,
    assert_enqueued,
    assert_num_jobs,
    collect,
    disabled,
)

done: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    with collect() as collected:
        yield collected


class Mail(Job, queue="mail"):
    def perform(self, to: Any = None, **kwargs: Any) -> Any:
        done.append(to)
        return to


class Other(Job):
    def perform(self) -> None:
        done.append("other")


@job(tags=["books"])
def function(value: int) -> int:
    done.append(value)
    return value


class Single(Job, unique="until_executed"):
    def perform(self, name: str) -> None:
        done.append(name)


class Brief(Job, unique="until_executing"):
    def perform(self, name: str) -> None:
        done.append((name, Brief.perform_async(name) is not None if len(done) < 2 else None))


class Latest(Job, unique="until_executed", on_conflict="replace", unique_on=["name"]):
    def perform(self, name: str, value: int) -> None:
        done.append((name, value))


class Failing(Job, retry=1):
    def perform(self, name: str, *, kind: str = "x") -> None:
        raise ValueError(name)


class Steps(Job):
    """Four lines, and a helper of the project's own."""

    def perform(self, name: str) -> None:
        done.append(f"{name} 1")
        helper(name)
        done.append(f"{name} 3")


def helper(name: str) -> None:
    done.append(f"{name} 2")


class AsyncSteps(Job):
    async def perform(self, name: str) -> None:
        done.append(f"{name} 1")
        await asyncio.sleep(0)
        done.append(f"{name} 2")


class Careless(Job):
    def perform(self) -> None:
        try:
            done.append(1)
            done.append(2)
        except BaseException:
            done.append("hidden")


class OnceAtMost(Job, at_most_once=True):
    def perform(self) -> None:
        done.append("once")


class InRows(Job):
    """Its rows come whole or not at all."""

    def perform(self) -> None:
        with transaction.atomic():
            for name in "ab":
                Group.objects.get_or_create(name=name)


# -- assertions


def test_a_failure_shows_the_nearest_job_and_how_it_differs(jobs):
    Mail.perform_async("ada", subject="Hello")
    Mail.perform_async("bob", subject="Hullo")
    Mail.set(queue="slow").perform_async("eve")
    with pytest.raises(AssertionError) as caught:
        jobs.assert_enqueued(Mail, args=["bob"], kwargs={"subject": "Hello!"}, queue="mail")
    lines = str(caught.value).splitlines()
    assert lines[1:] == [
        "Nearest of 3:",
        "    args: ['bob'], as wanted",
        "  ! kwargs: wanted {'subject': 'Hello!'}, is {'subject': 'Hullo'}",
        "    queue: 'mail', as wanted",
    ]


def test_long_values_are_compared_line_by_line(jobs):
    rows = [{"number": n, "name": "x" * 20} for n in range(4)]
    Mail.perform_async(rows)
    wanted = [*rows[:2], {"number": 2, "name": "y" * 20}, *rows[3:]]
    with pytest.raises(AssertionError) as caught:
        jobs.assert_enqueued(Mail, args=[wanted])
    text = str(caught.value)
    assert "It differs:" in text
    assert "  ! args: - wanted, + is" in text
    assert f"-   {{'name': '{'y' * 20}', 'number': 2}}" in text
    assert f"+   {{'name': '{'x' * 20}', 'number': 2}}" in text


def test_a_due_time_is_shown_as_one(jobs):
    when = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    Mail.perform_at(when)
    with pytest.raises(AssertionError, match=r"at: wanted 2030-01-02 .*, is 2030-01-01 00:00:00"):
        jobs.assert_enqueued(Mail, at=when + dt.timedelta(days=1))


def test_where_none_of_the_class_waits_the_others_are_named(jobs):
    Mail.perform_async()
    Mail.perform_async()
    function.perform_async(1)
    with pytest.raises(
        AssertionError, match=rf"there are: 2 of {__name__}.Mail, 1 of {__name__}.fun"
    ):
        jobs.assert_enqueued(Other)


def test_the_number_of_jobs(jobs):
    jobs.assert_num_jobs(0)
    Mail.perform_async(1)
    Mail.perform_in(60, 2)
    Other.perform_async()
    jobs.assert_num_jobs(3)
    assert_num_jobs(2, Mail)
    assert_num_jobs(1, queue="default")
    jobs.assert_num_jobs(0, Mail, queue="default")
    with pytest.raises(
        AssertionError, match=r"2 jobs of .*Mail on queue 'mail' are waiting, wanted 1"
    ):
        assert_num_jobs(1, Mail, queue="mail")
    with pytest.raises(AssertionError, match=rf"Waiting: {__name__}.Mail args=\[1\].*Other args"):
        assert_num_jobs(0)
    with disabled(), pytest.raises(TestModeError, match="assert_num_jobs works in fake mode only"):
        assert_num_jobs(0)


@pytest.mark.parametrize("wrong", ["shop.jobs.Mail", Job, len, None])
def test_what_is_no_job_is_said(jobs, wrong):
    with pytest.raises(TestModeError, match="is no job: give a Job class"):
        jobs.assert_enqueued(wrong)


# -- locks, also where a commit never comes


class TestLocks(TestCase):
    """Inside the transaction of a test all pushes wait for a commit."""

    def test_a_duplicate_is_refused_as_it_would_be_at_the_commit(self):
        refused: list[str] = []

        def receiver(jid: str, **kwargs: Any) -> None:
            refused.append(jid)

        job_refused.connect(receiver)
        try:
            with collect() as jobs:
                first, second = Single.perform_async("a"), Single.perform_async("a")
                Single.perform_async("b")
                jobs.assert_num_jobs(2)
                jobs.assert_enqueued(Single, args=["a"], count=1)
                assert jobs.drain() == 2
                assert done == ["a", "b"]
                assert first not in refused
                assert refused == [second]
                assert Single.perform_async("a")
                assert jobs.drain() == 1
        finally:
            job_refused.disconnect(receiver)

    def test_one_that_replaces(self):
        with collect() as jobs:
            Latest.perform_async("a", 1)
            Latest.perform_async("b", 1)
            Latest.perform_async("a", 2)
            assert [each["args"] for each in jobs.waiting] == [["b", 1], ["a", 2]]
            assert jobs.drain() == 2
        assert done == [("b", 1), ("a", 2)]

    def test_one_that_is_freed_by_the_start(self):
        with collect() as jobs:
            Brief.perform_async("a")
            assert jobs.drain() == 3
        assert done == [("a", True), ("a", True), ("a", None)]


def test_a_lock_is_kept_while_the_job_waits_for_its_retry(jobs):
    Single.perform_async("a")
    assert Single.perform_async("a") is None
    jobs.drain(run_twice=True)
    assert done == ["a", "a"]
    assert Single.perform_async("a")


# -- recorded errors, without a clock


def test_errors_may_be_recorded(jobs):
    Failing.perform_async("a")
    Failing.perform_async("b")
    Mail.perform_async(1)
    assert jobs.drain(Mail, errors="record") == 1
    assert jobs.drain(errors="record") == 4
    assert sorted(each["args"] for each in jobs.dead) == [["a"], ["b"]]
    assert jobs.waiting == jobs.retrying == []


def test_an_error_that_reaches_the_test_names_its_job(jobs):
    jid = Failing.perform_async("a", kind="y")
    with pytest.raises(ValueError) as caught:
        jobs.drain()
    call = f"{__name__}.Failing('a', kind='y')"
    assert caught.value.__notes__ == [f"Raised by job {call}, jid {jid}, attempt 1."]
    assert jobs.dead == jobs.retrying == []


# -- queues


def test_paused_queues_wait(jobs):
    Mail.perform_async(1)
    Other.perform_async()
    jobs.pause("mail")
    assert jobs.drain() == 1
    with pytest.raises(EmptyQueueError, match=r"The queues \['mail'\] are paused"):
        Mail.perform_one()
    jobs.resume("mail")
    assert jobs.perform_one(Mail) == 1
    with pytest.raises(ValueError, match="no spaces"):
        jobs.pause("a b")


def test_tags_are_there(jobs):
    function.perform_async(1)
    function.set(tags=["more"]).perform_async(2)
    assert [each["tags"] for each in jobs.waiting] == [["books"], ["more"]]


# -- deaths of workers


def test_each_job_runs_twice(jobs):
    Mail.perform_async(1)
    function.perform_async(2)
    assert jobs.drain(run_twice=True) == 2
    assert done == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("crash", "expected"),
    [
        ("before", ["a 1", "a 2", "a 3"]),
        ("after", ["a 1", "a 2", "a 3"] * 2),
    ],
)
def test_the_worker_dies_before_or_after_the_code(jobs, crash, expected):
    Steps.perform_async("a")
    assert Steps.drain(crash=crash) == 1
    assert done == expected


def test_it_dies_everywhere(jobs):
    """Before the code, before each of its four lines, after it; then it runs whole."""
    Steps.perform_async("a")
    assert jobs.drain(crash="everywhere") == 1
    one, two, three = "a 1", "a 2", "a 3"
    assert done == [one, one, one, two, one, two, three, one, two, three]


def test_no_library_is_left_in_the_midst_of_something(jobs):
    """Wherever it is installed."""
    places = [os.path.dirname(django.__file__), "/elsewhere/lib/python3/site-packages"]
    for place in places:
        done.clear()
        library: dict[str, Any] = {"done": done}
        code = "def call():\n  done.append(1)\n  done.append(2)\n  done.append(3)\n"
        exec(compile(code, os.path.join(place, "of_others.py"), "exec"), library)
        Calls.what = library["call"]
        Calls.perform_async()
        jobs.drain(crash="everywhere")
        assert done == [1, 2, 3] * 2


@pytest.mark.parametrize("way", ["drain", "adrain"])
def test_coroutines_die_too(jobs, way):
    AsyncSteps.perform_async("a")
    if way == "drain":
        jobs.drain(crash="everywhere")
    else:
        asyncio.run(jobs.adrain(crash="everywhere"))
    one, two = "a 1", "a 2"
    assert done == [one, one, one, two, one, two]


@pytest.mark.parametrize("more", [{}, {"crash": None}, {"crash": "after"}, {"run_twice": True}])
def test_a_seed_with_nothing_to_draw_is_refused(jobs, more):
    with pytest.raises(TestModeError, match="seed=3 means nothing without crash='random'"):
        jobs.drain(seed=3, **more)


def test_by_chance_is_the_same_for_the_same_seed(jobs):
    found = []
    for seed in (1, 1, 2, 3, 4):
        done.clear()
        for name in "abcd":
            Steps.perform_async(name)
        jobs.drain(crash="random", seed=seed)
        found.append(list(done))
        for name in "abcd":
            assert [each for each in done if each.startswith(name)][-3:] == [
                f"{name} {step}" for step in (1, 2, 3)
            ]
    assert found[0] == found[1]
    assert len({tuple(each) for each in found}) > 1
    assert any(len(each) > 12 for each in found)


def test_code_that_catches_everything_is_dead_all_the_same(jobs):
    Careless.perform_async()
    jobs.drain(crash="everywhere")
    assert done[-2:] == [1, 2]
    assert "hidden" in done


def test_a_job_that_is_to_run_once_at_most_is_buried_instead(jobs):
    OnceAtMost.perform_async()
    jobs.drain(run_twice=True)
    assert done == ["once"]
    assert jobs.dead[0]["error_class"].endswith(JobOrphanedError.__name__)
    jobs.clear()
    OnceAtMost.perform_async()
    jobs.drain(crash="before")
    assert done == ["once", "once"]
    assert jobs.dead == []


def test_deaths_are_named_where_the_job_then_fails(jobs):
    class Fragile:
        runs = 0

    def perform() -> None:
        Fragile.runs += 1
        if Fragile.runs > 1:
            raise ValueError("not twice")

    Calls.what = perform
    Calls.perform_async()
    with pytest.raises(ValueError) as caught:
        jobs.drain(crash="after")
    assert "after 1 deaths of its worker (crash='after')" in caught.value.__notes__[0]


class Calls(Job):
    what: Any = None

    def perform(self) -> None:
        type(self).what()


class TestRows(TransactionTestCase):
    def test_what_was_not_committed_is_not_there(self):
        seen: list[int] = []

        def perform() -> None:
            seen.append(Group.objects.count())
            with transaction.atomic():
                Group.objects.create(name=str(len(seen)))
                Group.objects.create(name=f"{len(seen)}b")

        Calls.what = perform
        with collect() as jobs:
            Calls.perform_async()
            jobs.drain(crash="everywhere")
        # Pairs or nothing, whatever line the worker died at.
        assert all(count % 2 == 0 for count in seen)
        assert not connection.in_atomic_block
        assert len(seen) > 4

    def test_an_idempotent_job_is_proved(self):
        with collect() as jobs:
            InRows.perform_async()
            jobs.drain(crash="everywhere", run_twice=True)
        assert Group.objects.count() == 2


def test_in_the_frozen_clock(jobs):
    with jobs.frozen("2026-05-04", run_twice=True) as clock:
        Mail.perform_in(60, 1)
        (ran,) = clock.tick(minutes=1)
        assert ran.outcome == "finished"
    assert done == [1, 1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"crash": "midway"},
            "crash='midway'; allowed are 'before', 'after', 'random', 'everywhere'",
        ),
        ({"errors": "ignore"}, "errors='ignore'; allowed are 'raise' and 'record'"),
        ({"run_thrice": True}, "run_thrice means nothing here; allowed are errors, run_twice"),
    ],
)
def test_options_that_are_none(jobs, given, said):
    Mail.perform_async()
    with pytest.raises(TestModeError, match=said):
        jobs.drain(**given)
    jobs.assert_num_jobs(1)


# -- coroutines


def test_twins_for_coroutines(jobs):
    async def test() -> list[Any]:
        for value in range(4):
            await Mail.aperform_async(value)
        await function.aperform_async(9)
        await Other.aperform_async()
        found = [await Mail.aperform_one(), await Mail.adrain()]
        found += [await function.aperform_one(), await function.adrain()]
        return [*found, await adrain_all(), await jobs.adrain()]

    assert asyncio.run(test()) == [0, 3, 9, 0, 1, 0]


class TestAsyncTwins(TestCase):
    async def test_in_the_tests_transaction(self):
        with collect() as jobs:
            await InRows.aperform_async()
            jobs.assert_num_jobs(1)
            assert await jobs.adrain() == 1
            assert await Group.objects.acount() == 2


# -- the mixin


@pytest.mark.parametrize("kind", [TestCase, TransactionTestCase, SimpleTestCase])
def test_a_mixin_after_the_class_is_refused(kind):
    """It would have no effect, and the tests would push to the real Redis."""
    with pytest.raises(TestModeError, match=rf"class Wrong\(CogworkerTestCase, {kind.__name__}\)"):
        type("Wrong", (kind, CogworkerTestCase), {})
    base = type("Right", (CogworkerTestCase, kind), {"__test__": False})
    type("Beneath", (base, kind), {"__test__": False})
    type("Between", (type("Mixin", (), {}), base), {"__test__": False})


class _Sample(CogworkerTestCase, TestCase):
    """Run by the tests below."""

    __test__ = False

    @classmethod
    def setUpTestData(cls) -> None:
        Mail.perform_async("of the class")

    def setUp(self) -> None:  # without super(): nobody is to need it
        Mail.perform_async("of setUp")

    def test_each_begins_with_nothing(self) -> None:
        self.assert_num_jobs(1)
        self.assert_enqueued(Mail, args=["of setUp"], queue="mail")
        self.assert_not_enqueued(Other)
        assert self.jobs.waiting == Mail.jobs
        assert self.drain(run_twice=True) == 1

    test_once_more = test_each_begins_with_nothing

    async def test_coroutines(self) -> None:
        await Other.aperform_async()
        assert await self.adrain(Other) == 1

    def test_a_failure_leaves_the_mode(self) -> None:
        with self.jobs.frozen("2026-05-04"):
            raise ZeroDivisionError


class _Plain(CogworkerTestCase, unittest.TestCase):
    __test__ = False

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        Mail.perform_async("of the class")

    def test(self) -> None:
        Mail.perform_async(1)
        self.drain()


class _Simple(_Plain, SimpleTestCase):
    pass


class _Transactions(_Plain, TransactionTestCase):
    pass


def run(case: type[unittest.TestCase]) -> unittest.TestResult:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    return result


def outside() -> None:
    """No mode is left in force."""
    with pytest.raises(TestModeError):
        assert_enqueued(Mail)


@pytest.mark.django_db
def test_the_mixin_puts_each_test_into_fake_mode():
    result = run(_Sample)
    assert result.testsRun == 4
    assert result.failures == []
    ((failed, _),) = result.errors
    assert "ZeroDivisionError" in result.errors[0][1]
    assert failed.id().endswith("test_a_failure_leaves_the_mode")
    assert sorted(done) == [*["of setUp"] * 4, "other"]
    outside()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("case", [_Plain, _Simple, _Transactions])
def test_the_mixin_goes_with_every_test_class(case):
    assert run(case).wasSuccessful()
    assert done == [1]
    outside()


@pytest.mark.django_db
def test_it_stands_above_the_setting():
    with override_settings(COGWORKER_TESTING="fake"):
        Other.perform_async()
        assert run(_Plain).wasSuccessful()
        assert len(Other.jobs) == 1


def test_it_can_be_debugged():
    with contextlib.suppress(ZeroDivisionError):
        _Plain("test").debug()
    assert done == [1]
    outside()
