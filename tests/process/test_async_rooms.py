"""The two rooms of a worker with async queues, the processors' and the loop's: what each owes to the other."""

from __future__ import annotations

from typing import Any

import pytest

from django_cogworker.client import push_bulk
from django_cogworker.store.scripts import script
from tests.asyncjobs import jobs
from tests.process.coroutines import looks_at, start, waits_for
from tests.process.dying import wait_for_call
from tests.process.odd import Board
from tests.project.jobs import Wait
from tests.support.waiting import wait_until
from tests.support.worker import WorkerProcess

#: The queue of each room, and a job on it that waits.
ROOMS = {"default": Wait, "hooks": jobs.Waits}


@pytest.fixture(autouse=True)
def known_script(board: Board) -> None:
    """Or the first reply is "no script", and a rule of the proxy is used up by it."""
    board.client.script_load(script("exchange").text)


# -- what had started when the worker was killed


def orphanings(board: Board) -> dict[str, Any]:
    """The counts of what lies on the queues, by the job's first argument."""
    waiting = board.queue("hooks") + board.queue()
    return {each["args"][0]: each.get("orphanings") for each in waiting}


def test_of_a_killed_workers_jobs_those_that_had_started_count_in_both_rooms(
    start_worker, journal, board, redis_url, make_proxy
):
    """CE-4: what its worker never learned of has not started, and is innocent."""
    proxy = make_proxy(redis_url)
    worker = start(start_worker, url=proxy.url)
    for name in ("w1", "w2"):
        jobs.Waits.perform_async(name)
    once = jobs.WaitsOnce.perform_async("once")
    for name in ("s1", "s2"):
        Wait.perform_async(name)
    for name in ("w1", "w2", "once", "s1", "s2"):
        journal.wait_for(f"started {name}")
    proxy.lose_reply(looks_at("hooks"), times=None)
    proxy.lose_reply(looks_at("default"), times=None)
    plain = {"class": jobs.Waits, "args": ["n"], "queue": "hooks"}
    guarded = {**plain, "class": jobs.WaitsOnce, "args": ["n once"], "at_most_once": True}
    push_bulk([plain, guarded])  # by one call, so that one reply grants both
    wait_until(lambda: board.in_progress() == 7)
    worker.kill()
    # One that serves neither queue brings the jobs back and leaves them there.
    start(start_worker, "-q", "others", "--async-queues", "none")
    board.wait_until_settled()
    counted = dict.fromkeys(("w1", "w2", "s1", "s2"), 1)
    assert orphanings(board) == {**counted, "n": None, "n once": None}
    assert [each["jid"] for each in board.all_dead()] == [once]


# -- burst


@pytest.mark.parametrize(
    ("first", "slow"), [(jobs.PushesCoroutine, "hooks"), (jobs.PushesSync, "default")]
)
def test_a_burst_does_not_end_before_both_rooms_are_empty(
    start_worker, journal, board, redis_url, make_proxy, first, slow
):
    """The last job that is known pushes one for the other room, whose listener hears of it late."""
    proxy = make_proxy(redis_url)
    proxy.delay_reply(1.5, waits_for(slow))
    looks = proxy.delay_reply(0, looks_at(slow))
    first.perform_async("a", 1)
    started: list[WorkerProcess] = []

    def begin() -> None:
        args = {"url": proxy.url, "COGWORKER_ASYNC_CONCURRENCY": 1}
        started.append(start(start_worker, "--burst", **args))

    wait_for_call(board, "survey", begin)
    journal.wait_for("started a 1")
    # It looks once more when it knows of no dead worker, and then each time when its listener has heard nothing.
    before = looks.hits
    wait_until(lambda: looks.hits >= before + 2)
    journal.release("a 1")
    journal.wait_for("started a 0")
    journal.release("a 0")
    assert started[0].wait(30) == 0
    assert board.processed == 2
    assert journal.lines() == ["started a 1", "finished a 1", "started a 0", "finished a 0"]


# -- lost replies


@pytest.mark.parametrize("lost", ROOMS)
def test_after_a_lost_reply_both_rooms_are_looked_after(
    start_worker, journal, board, redis_url, make_proxy, lost
):
    """The repeated call brings the job of one room. The other's listener hangs, so the fetcher itself must look."""
    proxy = make_proxy(redis_url)
    worker = start(start_worker, url=proxy.url)
    worker.wait_for_line("works as")
    (other,) = set(ROOMS) - {lost}
    hanging = proxy.lose_request(waits_for(other), then="hang")
    assert hanging.wait()
    ROOMS[other].perform_async("other")
    reply = proxy.lose_reply(looks_at(lost))
    ROOMS[lost].perform_async("granted")
    assert reply.wait()
    journal.wait_for("started granted")
    # The listener hangs for longer, and no job's end brings the fetcher to look.
    journal.wait_for("started other", timeout=3)
    for name in ("granted", "other"):
        journal.release(name)
    board.wait_until_settled()
    assert board.processed == 2
    assert worker.stop() == 0
