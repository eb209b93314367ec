"""Interrupting the own code of a run: it lands there or nowhere. No Redis."""

from __future__ import annotations

import asyncio
import sys
import threading
from functools import partial

import pytest

from django_cogworker.exceptions import JobCancelled, JobTimeout
from django_cogworker.features.interrupting.clock import clock
from django_cogworker.features.interrupting.insistence import Insistence
from django_cogworker.jobs import interruption
from django_cogworker.jobs.context import JobContext, running_jobs


def context() -> JobContext:
    return JobContext({"jid": "a" * 24, "class": "x.Y"}, 1)


def count_to(number: int) -> None:
    for _ in range(number):
        pass


def loop_for_ever() -> None:
    while True:
        sum(range(100))


def test_an_interruption_that_was_set_and_has_not_landed_is_taken_back():
    """It comes about when the code ends, again and again: none gets out of its run."""
    strays = landed = 0
    for number in range(2000):
        run = context()
        insistence = Insistence(run, JobTimeout, "late", 0.0002)
        try:
            run.run(partial(count_to, 100 + number % 50 * 400))
        except JobTimeout:
            landed += 1
            assert run.is_interrupted
        finally:
            insistence.end()
        try:
            for _ in range(20):
                sum(range(10))
        except JobTimeout:
            strays += 1
    assert (strays, clock._timed, running_jobs()) == (0, {}, [])
    assert landed


def traced() -> list[str]:
    """The calls that a debugger sees now; it must not hang."""
    seen: list[str] = []
    before = sys.gettrace()
    sys.settrace(lambda frame, event, arg: seen.append(frame.f_code.co_name))
    count_to(3)
    sys.settrace(before)
    return seen


def test_a_debugger_works_after_a_coroutine_and_after_an_interruption():
    """Python 3.11 hangs there once it was asked to take back what was not under way."""

    async def coroutine() -> int:
        return 1

    run = context()
    assert run.run(lambda: asyncio.run(run.awaiting(coroutine()))) == 1
    assert traced() == ["count_to"]
    run = context()

    def interrupts_itself() -> None:
        run.interrupt(JobTimeout, "late")
        loop_for_ever()

    with pytest.raises(JobTimeout):
        run.run(interrupts_itself)
    assert traced() == ["count_to"]


@pytest.fixture
def hectic():
    """Threads change places all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def test_whoever_is_told_that_it_was_in_time_has_ended_that_run(hectic):
    """Without any clock between: another thread interrupts whatever runs."""
    runs: list[JobContext] = []
    done = threading.Event()
    told: dict[int, bool] = {}

    def interrupter() -> None:
        while not done.is_set():
            for each in runs[-1:]:
                if each.interrupt(JobCancelled, "enough"):
                    told[id(each)] = True

    thread = threading.Thread(target=interrupter)
    thread.start()
    ended: dict[int, bool] = {}
    try:
        while len(ended) < 50 or len(ended) == len(runs):
            run = context()
            runs.append(run)
            try:
                run.run(lambda: count_to(len(runs) % 100))
            except JobCancelled:
                ended[id(run)] = True
            count_to(20)  # here a stray would land
    finally:
        done.set()
        thread.join()
    assert told.keys() <= ended.keys()


def test_one_that_comes_after_the_end_changes_nothing():
    run = context()
    assert run.run(lambda: 5) == 5
    assert not run.interrupt(JobTimeout, "late")
    sum(range(10))  # here it would land
    assert not run.is_interrupted
    assert run.ended_by is None


def test_what_has_not_begun_does_not_begin():
    run = context()
    assert run.interrupt(JobCancelled, "never")
    with pytest.raises(JobCancelled, match="never"):
        run.run(lambda: pytest.fail("it began"))


def test_one_that_lands_on_the_way_out_is_caught(monkeypatch):
    calls = []
    take_back = interruption._take_back

    def interrupted() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise JobTimeout
        take_back()

    run = context()

    def code() -> int:
        run._reason = (JobTimeout, "in the last moment")
        return 5

    monkeypatch.setattr(interruption, "_take_back", interrupted)
    with pytest.raises(JobTimeout, match="in the last moment"):
        run.run(code)
    assert calls == [1, 1]
    assert running_jobs() == []


def test_what_the_job_raises_in_time_is_its_own_error():
    run = context()
    insistence = Insistence(run, JobTimeout, "late", 60)
    with pytest.raises(ZeroDivisionError):
        run.run(lambda: 1 // 0)
    insistence.end()
    assert run.ended_by is None
    assert clock._timed == {}


def test_another_error_that_is_made_of_the_interruption_counts_as_the_interruption():
    insistences: list[Insistence] = []

    def convert() -> None:
        try:
            insistences.append(Insistence(run, JobTimeout, "too long"))
            loop_for_ever()
        except JobTimeout:
            raise KeyError("other") from None

    run = context()
    with pytest.raises(JobTimeout, match="too long") as caught:
        run.run(convert)
    for each in insistences:
        each.end()
    assert isinstance(caught.value.__cause__, KeyError)
    assert run.ended_by is caught.value


def test_the_first_reason_counts_and_is_repeated_until_it_is_heard(monkeypatch):
    monkeypatch.setattr("django_cogworker.features.interrupting.insistence.AGAIN", 0.05)
    begun = threading.Event()
    swallowed: list[int] = []

    def deaf() -> None:
        for each in range(3):
            try:
                begun.set()
                loop_for_ever()
            except JobTimeout:
                swallowed.append(each)
        loop_for_ever()

    def insist() -> None:
        begun.wait(10)
        insistences.append(Insistence(run, JobTimeout, "first"))
        insistences.append(Insistence(run, JobCancelled, "second"))

    run = context()
    insistences: list[Insistence] = []
    other = threading.Thread(target=insist)
    other.start()
    with pytest.raises(JobTimeout, match="first"):
        run.run(deaf)
    other.join()
    for each in insistences:
        each.end()
    assert swallowed[:1] == [0], "and the next one may come before the first is dealt with"


def test_who_is_interrupted_while_it_adds_to_the_clock_leaves_it_going(hectic):
    """A job that runs another one with a limit, in a test mode."""
    for _ in range(300):
        run = context()
        outer = Insistence(run, JobTimeout, "outer", 0.002)
        inner: list[Insistence] = []

        def code(inner: list[Insistence] = inner) -> None:
            while True:
                inner.append(Insistence(context(), JobTimeout, "inner", 60))
                inner.pop().end()

        with pytest.raises(JobTimeout, match="outer"):
            run.run(code)
        for each in (outer, *inner):
            each.end()
    clock._timed.clear()  # one that was interrupted before anybody knew of it
    late = context()
    insistence = Insistence(late, JobTimeout, "late", 0.01)
    with pytest.raises(JobTimeout, match="late"):
        late.run(loop_for_ever)
    insistence.end()


def test_a_coroutine_is_cancelled_and_its_task_goes_on():
    run = context()
    seen = []

    async def code() -> None:
        threading.Thread(target=run.interrupt, args=(JobCancelled, "enough")).start()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def main() -> int:
        with pytest.raises(JobCancelled, match="enough"):
            await run.awaiting(code())
        task = asyncio.current_task()
        assert task is not None
        async with asyncio.timeout(60):  # which a count of cancellations that is left would confuse
            await asyncio.sleep(0)
        return task.cancelling()

    assert asyncio.run(main()) == 0
    assert seen == ["cancelled"]
    assert not run.interrupt(JobCancelled, "again")
    assert running_jobs() == []


def test_a_coroutine_that_has_not_begun_does_not_begin():
    run = context()
    run.interrupt(JobCancelled, "never")

    async def code() -> None:
        pytest.fail("it began")

    with pytest.raises(JobCancelled, match="never"):
        asyncio.run(run.awaiting(code()))
