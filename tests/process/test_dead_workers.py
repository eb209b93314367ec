"""How soon the jobs of dead workers come back, and what makes nobody dead. Real workers."""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from itertools import count

import pytest

from django_cogworker.worker.heartbeat import INTERVAL
from tests.killers.jobs import WaitLong
from tests.oddjobs.clocks import FILE as CLOCK
from tests.process.dying import (
    ELSEWHERE,
    QUICK,
    SEEN,
    THRESHOLD,
    UNSEEN,
    check_nobody_died,
    let_time_pass,
    ready,
    rerun_after,
    seconds_until,
    stand_still,
    tombstones,
    wait_for_call,
)
from tests.process.odd import KEYS
from tests.project.jobs import Append, Wait
from tests.support.namespaces import own_pids
from tests.support.proxy import RedisProxy
from tests.support.waiting import wait_until
from tests.support.worker import WorkerProcess

WRONG_CLOCK = {"COGWORKER_SERVER_MIDDLEWARE": ["tests.oddjobs.clocks.middleware"]}


# -- how soon


def test_a_neighbour_that_has_seen_the_worker_brings_its_job_back_within_two_seconds(
    start_worker, journal, board
):
    """G81: by the process that is gone, with the default threshold of a minute."""
    for name in "abc":
        Wait.perform_async(name)
    victims = [start_worker("-c", "1") for _ in "abc"]
    for name in "abc":
        journal.wait_for(f"started {name}")
    wait_for_call(board, "survey", lambda: start_worker("-c", "3"))
    # The survey names them; now the look of each second misses them.
    begun = time.monotonic()
    for each in victims:
        each.signal(signal.SIGKILL)  # without waiting, so that one look misses all
    for name in "abc":
        journal.wait_for(f"started {name}", times=2)
    assert time.monotonic() - begun < SEEN
    for name in "abc":
        journal.release(name)
        journal.wait_for(f"finished {name}")
    board.wait_until_settled()
    assert board.processed == 3


def test_a_supervisor_brings_the_job_of_a_lost_worker_back_within_two_seconds(
    start_worker, journal, board
):
    """CE-4"""
    supervisor = start_worker("--processes", "2", "-c", "1")
    wait_until(lambda: board.client.zcard(KEYS.beats) == 2, timeout=20)
    supervisor.wait_for_line("works as")
    Wait.perform_async("a")
    journal.wait_for("started a")
    (holder,) = board.client.hkeys(KEYS.holders)
    death = partial(os.kill, int(holder.split(b":")[1]), signal.SIGKILL)
    assert rerun_after(journal, "started a", death) < SEEN
    journal.release("a")
    journal.wait_for("finished a")
    assert supervisor.stop() == 0


def test_a_new_fleet_on_the_host_brings_back_within_two_seconds_what_the_old_one_left(
    start_worker, journal, board
):
    """G60: all workers died; from the first beat of the new ones."""
    for name in "abc":
        Wait.perform_async(name)
    fleet = [start_worker("-c", "1") for _ in "abc"]
    for name in "abc":
        journal.wait_for(f"started {name}")
    for each in fleet:
        each.kill()
    fresh = start_worker("-c", "3")
    ready(fresh)
    begun = time.monotonic()
    for name in "abc":
        journal.wait_for(f"started {name}", times=2)
    assert time.monotonic() - begun < SEEN
    assert len(tombstones(board)) == 3


@pytest.mark.parametrize("how", ["faked host", "own process ids"])
def test_what_nobody_can_look_at_comes_back_soon_after_the_threshold(
    start_worker, journal, board, how
):
    """G62, G66: a worker in another container, whose process nobody else sees."""
    Wait.perform_async("far")
    if how == "faked host":
        far = start_worker("-c", "1", conf=QUICK, env=ELSEWHERE)
    else:
        far = start_worker("-c", "1", conf=QUICK, python=(*own_pids(), sys.executable))
    journal.wait_for("started far")
    near = start_worker("-c", "1", conf=QUICK)
    ready(near)
    elapsed = rerun_after(journal, "started far", far.kill)
    assert THRESHOLD - 2 * THRESHOLD / 6 < elapsed < UNSEEN
    near.wait_for_line(r"is dead \(it was silent too long\)")
    journal.release("far")
    journal.wait_for("finished far")
    board.wait_until_settled()
    assert board.processed == 1


@pytest.mark.parametrize("pause", ["at once", "after a while"])
def test_a_new_fleet_elsewhere_brings_back_what_the_old_one_left(
    start_worker, journal, board, pause
):
    """G60, G66: all died, and the new ones run on another host; from their first beat."""
    Wait.perform_async("a")
    old = start_worker("-c", "1", conf=QUICK, env=ELSEWHERE)
    journal.wait_for("started a")
    old.kill()
    if pause == "after a while":
        # So long that it might have been an outage of Redis: the new ones wait for a threshold.
        let_time_pass(board, THRESHOLD)
    fresh = start_worker("-c", "1", conf=QUICK)
    ready(fresh)
    elapsed = seconds_until(lambda: journal.wait_for("started a", times=2, timeout=40))
    assert elapsed < UNSEEN
    if pause == "after a while":
        assert elapsed > THRESHOLD - 1
    journal.release("a")
    journal.wait_for("finished a")


# -- what makes nobody dead


def run_through_an_outage(start_worker, journal, board, proxies, threshold, outage) -> None:
    conf = {**QUICK, "COGWORKER_ORPHAN_THRESHOLD": threshold}
    workers = []
    for number, proxy in enumerate(proxies):
        WaitLong.perform_async(f"j{number}")
        env = {"DYNO": f"host-{number}"}
        workers.append(start_worker("-c", "1", conf=conf, env=env, url=proxy.url))
        journal.wait_for(f"started j{number}")
    for each in workers:
        ready(each)
    for proxy in proxies:
        proxy.down()
    let_time_pass(board, outage)
    for proxy, worker in zip(proxies, workers, strict=True):
        # They do not come back all at once; the first has time to look round.
        proxy.up()
        worker.wait_for_line("is back after")
        if proxy is proxies[0]:
            wait_for_call(board, "survey")
    let_time_pass(board, threshold + 6)
    check_nobody_died(board, *workers)
    for number in range(len(proxies)):
        journal.release(f"j{number}")
        journal.wait_for(f"finished j{number}")
        assert journal.count(f"started j{number}") == 1
    board.wait_until_settled()
    assert (board.processed, board.failed) == (len(proxies), 0)


@pytest.mark.timeout(150)
def test_after_an_outage_of_redis_all_are_who_they_were(
    start_worker, journal, board, redis_url, make_proxy
):
    """G64: half as long again as the threshold, and one worker is back before the other."""
    proxies = [make_proxy(redis_url) for _ in range(2)]
    # The first one looks round within six seconds; that must not be the other's threshold.
    threshold = 2 * THRESHOLD
    run_through_an_outage(start_worker, journal, board, proxies, threshold, 1.5 * threshold)


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_after_ninety_seconds_without_redis_all_are_who_they_were(
    start_worker, journal, board, redis_url, make_proxy
):
    """G64 with the numbers of real life."""
    proxies = [make_proxy(redis_url) for _ in range(2)]
    run_through_an_outage(start_worker, journal, board, proxies, 60, 90)


def test_a_worker_that_stands_still_for_less_than_the_threshold_stays_who_it_is(
    start_worker, journal, board
):
    Wait.perform_async("kept")
    still = start_worker("-c", "1", conf=QUICK, env=ELSEWHERE)
    journal.wait_for("started kept")
    identity = ready(still)
    other = start_worker("-c", "1", conf=QUICK)
    ready(other)
    stand_still(still)
    let_time_pass(board, THRESHOLD - 2)
    wait_for_call(board, "survey")
    before = board.client.zscore(KEYS.beats, identity)
    still.resume()
    wait_until(lambda: board.client.zscore(KEYS.beats, identity) > before)
    wait_for_call(board, "survey")
    check_nobody_died(board, still, other)
    journal.release("kept")
    journal.wait_for("finished kept")
    board.wait_until_settled()
    assert journal.count("started kept") == 1


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_is_set_by_an_hour_kills_nobody(start_worker, journal, board, hours):
    """Neither the worker whose clock it is, nor the others in its eyes."""
    conf = {**QUICK, **WRONG_CLOCK}
    Wait.perform_async("wrong")
    wrong = start_worker("-c", "1", conf=conf, env=ELSEWHERE)
    journal.wait_for("started wrong")
    Wait.perform_async("right")
    right = start_worker("-c", "1", conf=QUICK)
    journal.wait_for("started right")
    (journal.directory / CLOCK).write_text(str(hours * 3600))
    let_time_pass(board, THRESHOLD + INTERVAL)
    wait_for_call(board, "survey")
    check_nobody_died(board, wrong, right)
    for name in ("wrong", "right"):
        journal.release(name)
        journal.wait_for(f"finished {name}")
        assert journal.count(f"started {name}") == 1
    board.wait_until_settled()
    assert board.processed == 2


# -- short lives


@pytest.mark.parametrize("stop", ["by themselves", "from outside"])
@pytest.mark.timeout(90)
def test_burst_workers_with_short_lives_bring_back_what_another_host_left(
    start_worker, journal, board, redis_url, make_proxy, stop
):
    """One after the other, each for some two seconds, and each takes its own beat away."""
    conf = {**QUICK, "COGWORKER_ORPHAN_THRESHOLD": 12}

    def next_one() -> tuple[RedisProxy, WorkerProcess]:
        """One that has everything but Redis, so that no gap between two lives is a slow start."""
        proxy = make_proxy(redis_url)
        proxy.down()
        worker = start_worker("-c", "1", "--burst", conf=conf, url=proxy.url)
        worker.wait_for_line("is away")
        return proxy, worker

    Wait.perform_async("left")
    dead = start_worker("-c", "1", conf=conf, env=ELSEWHERE)
    journal.wait_for("started left")
    proxy, worker = next_one()
    dead.kill()
    journal.release("left")
    begun = time.monotonic()
    for number in count():
        Append.perform_async(f"life {number}")
        proxy.up()
        journal.wait_for(f"life {number}")
        following = next_one()
        if stop == "from outside":
            let_time_pass(board, 1)
            worker.signal(signal.SIGTERM)
        worker.wait()
        if journal.count("finished left"):
            break
        assert time.monotonic() - begun < 12 + 15, "nobody brings it back"
        proxy, worker = following
    assert number > 1
    assert journal.count("started left") == 2
    board.wait_until_settled()
