"""Reading the stacks of runs. No Redis."""

from __future__ import annotations

import asyncio
import threading
import types
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import pytest

from django_cogworker.features.stacks import feature, looking
from django_cogworker.jobs.context import JobContext, running_jobs
from tests.support.waiting import wait_until


def context() -> JobContext:
    return JobContext({"jid": "a" * 24, "class": "x.Y"}, 1)


@types.coroutine
def innermost(end: asyncio.Event) -> Generator[Any, Any, None]:
    yield from end.wait().__await__()


async def middle(end: asyncio.Event) -> None:
    await innermost(end)


async def outermost(end: asyncio.Event) -> None:
    await middle(end)


@pytest.fixture
def loop():
    """A loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def started(loop: asyncio.AbstractEventLoop, run: JobContext) -> Callable[[], None]:
    """The coroutines above as a run that waits; what ends it."""

    async def make() -> asyncio.Event:
        return asyncio.Event()

    end = asyncio.run_coroutine_threadsafe(make(), loop).result()
    running = asyncio.run_coroutine_threadsafe(run.awaiting(outermost(end)), loop)
    wait_until(lambda: run in running_jobs())

    def finish() -> None:
        loop.call_soon_threadsafe(end.set)
        running.result()

    return finish


def functions(stack: str) -> list[str]:
    lines = [each for each in stack.splitlines() if each.startswith("  File ")]
    return [each.rpartition(" in ")[2] for each in lines]


def test_of_a_coroutine_each_link_is_shown_that_of_generators_too(loop):
    run = context()
    finish = started(loop, run)
    (stack,) = looking.stacks_of([run])
    assert functions(stack) == ["outermost", "middle", "innermost"]
    assert "await middle(end)" in stack
    finish()
    assert looking.stacks_of([run]) == [""]


def test_a_held_up_loop_is_not_waited_for_longer_than_once(loop, monkeypatch):
    monkeypatch.setattr(looking, "PATIENCE", 0.05)
    runs = [context(), context()]
    ends = [started(loop, each) for each in runs]
    gate, inside = threading.Event(), threading.Event()

    def hold_up() -> None:
        inside.set()
        gate.wait()

    loop.call_soon_threadsafe(hold_up)
    inside.wait()
    stacks = looking.stacks_of(runs)
    gate.set()
    assert ["hold_up" in functions(each) for each in stacks] == [True, True]
    for each in ends:
        each()


def test_a_thread_that_is_at_something_else_by_now_is_not_taken_for_the_run():
    """It ended between the look for runs and the look at its stack."""
    run, over, gate = context(), threading.Event(), threading.Event()

    def thread() -> None:
        run.run(partial(int, 1))
        over.set()
        gate.wait()

    other = threading.Thread(target=thread)
    other.start()
    over.wait()
    assert run.stack() != ""
    assert looking.stacks_of([run]) == [""]
    gate.set()
    other.join()


def test_of_many_jobs_those_that_run_longest_are_told_of_and_long_stacks_end_at_the_end(
    loop, monkeypatch
):
    monkeypatch.setattr(feature, "MOST", 2)
    monkeypatch.setattr(feature, "MAX_STACK", 30)
    runs = [context() for _ in range(3)]
    ends = [started(loop, each) for each in runs]
    for run, began_at in zip(runs, (3.0, 1.0, 2.0), strict=True):
        run.began_at = began_at
    jobs, more = feature._taken()
    assert ([each.since for each in jobs], more) == ([1.0, 2.0], 1)
    assert [len(each.stack) for each in jobs] == [30, 30]
    assert jobs[0].stack.endswith("end.wait().__await__()\n")
    for each in ends:
        each()
