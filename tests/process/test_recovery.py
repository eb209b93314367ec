"""Recovery: whatever is killed, its jobs come back. Real workers, really killed."""

from __future__ import annotations

import signal
import time
from functools import partial

import pytest

from django_cogworker.store.scripts import script
from tests.oddjobs.jobs import OneShot
from tests.process.odd import KEYS, ODD
from tests.project.jobs import Append, ExitWorker, KillWorker, Wait
from tests.support.waiting import wait_until

#: Judged silent after six seconds, and a beat a second.
QUICK = {"COGWORKER_ORPHAN_THRESHOLD": 6}
#: As if on another host: nobody can look at its process.
ELSEWHERE = {"DYNO": "another-host"}


def ready(worker) -> str:
    return worker.wait_for_line(r"works as (\S+): ")[1]


def ended(worker, board) -> bool:
    return not worker.alive or board.client.zcard(KEYS.dead) == 1


def test_a_neighbour_brings_back_the_jobs_of_a_killed_worker_at_once(start_worker, journal, board):
    """G81: judged by the process that is gone, with the default threshold of a minute."""
    Wait.perform_async("long")
    first = start_worker("-c", "1")
    journal.wait_for("started long")
    second = start_worker("-c", "1")
    ready(second)
    # The neighbour has to have seen the other one: with its first survey, at its start.
    killed = time.monotonic()
    first.kill()
    journal.wait_for("started long", times=2, timeout=10)
    assert time.monotonic() - killed < 8
    journal.release("long")
    journal.wait_for("finished long")
    board.wait_until_settled()
    assert board.processed == 1
    assert board.failed == 0


def test_a_new_worker_finds_what_a_fleet_left_that_died_whole(start_worker, journal, board):
    """G60: nobody was left to see them die."""
    for number in range(3):
        Wait.perform_async(f"w{number}")
    workers = [start_worker("-c", "1") for _ in range(3)]
    for number in range(3):
        journal.wait_for(f"started w{number}")
    for each in workers:
        each.kill()
    for number in range(3):
        journal.release(f"w{number}")
    fresh = start_worker("-c", "3")
    for number in range(3):
        journal.wait_for(f"finished w{number}", timeout=10)
    # One of the three may have seen another die before it was killed itself.
    everybody = [fresh, *workers]
    wait_until(lambda: sum("is dead" in line for each in everybody for line in each.lines) == 3)
    board.wait_until_settled()
    assert board.client.hlen(KEYS.holders) <= 1


def test_a_job_that_kills_its_workers_is_buried_and_its_neighbours_are_not(
    start_worker, journal, board
):
    """CE-4, SK-2: the killer runs alone from the second time on, and is buried at the fourth."""
    for number in range(4):
        Wait.perform_async(f"w{number}")
    jid = KillWorker.perform_async("killer", 99)
    for number in range(10):
        journal.release(f"w{number}")
    lives = 0
    while not board.client.zcard(KEYS.dead):
        worker = start_worker("-c", "5")
        wait_until(partial(ended, worker, board), timeout=30)
        lives += 1
        assert lives <= 6
    record = board.dead(jid)
    assert record["error_class"].endswith("JobOrphanedError")
    assert "died 4 times" in record["error_message"]
    assert journal.count("killing killer") == 4
    for number in range(4):
        journal.wait_for(f"finished w{number}")
    board.wait_until_settled()
    assert board.failed == 1
    assert board.outcomes(jid) == ["dead"]


def test_a_job_that_ends_in_spite_of_a_crash_starts_with_a_clean_sheet(
    start_worker, journal, board
):
    """The count of crashes is dropped with the first end of its own."""
    ExitWorker.perform_async("once", 7)
    start_worker("-c", "1").process.wait(15)
    start_worker("-c", "1")
    journal.wait_for("once")
    board.wait_until_settled()
    assert board.processed == 1
    assert board.client.zcard(KEYS.dead) == 0


def test_an_at_most_once_job_that_had_started_is_buried_after_a_crash(start_worker, journal, board):
    """DR-12"""
    jid = OneShot.perform_async("shot")
    worker = start_worker("-c", "1", conf=ODD)
    journal.wait_for("started shot")
    worker.kill()
    start_worker("-c", "1", conf=ODD)
    wait_until(lambda: board.client.zcard(KEYS.dead) == 1)
    assert "at-most-once" in board.dead(jid)["error_message"]
    assert journal.count("started shot") == 1


def test_the_death_hooks_of_a_recovered_job_run_once_though_the_reply_was_lost(
    start_worker, journal, board, redis_url, make_proxy
):
    """The job is in the dead set and the recoverer did not hear of it: nobody else would run them."""
    proxy = make_proxy(redis_url)
    board.client.script_load(script("recover").text)  # or the reply that is lost says "no script"
    jid = OneShot.perform_async("shot")
    worker = start_worker("-c", "1", conf=ODD)
    journal.wait_for("started shot")
    lost = proxy.lose_reply(b'"d": "dead"')
    recoverer = start_worker("-c", "1", conf=ODD, url=proxy.url)
    ready(recoverer)
    worker.kill()
    assert lost.wait()
    journal.wait_for("exhausted shot")
    assert board.dead(jid)
    board.wait_until_settled()
    assert recoverer.stop() == 0
    assert journal.count("exhausted shot") == 1
    assert board.failed == 1


def test_a_worker_of_another_host_is_judged_by_its_silence(start_worker, journal, board):
    """G62, G66: not before the threshold, and then by anybody."""
    Wait.perform_async("far")
    far = start_worker("-c", "1", conf=QUICK, env=ELSEWHERE)
    journal.wait_for("started far")
    near = start_worker("-c", "1", conf=QUICK)
    ready(near)
    wait_until(lambda: board.client.get(KEYS.fleet_since) is not None)
    killed = time.monotonic()
    far.kill()
    journal.wait_for("started far", times=2, timeout=25)
    assert time.monotonic() - killed > 4
    near.wait_for_line(r"another-host:.* is dead \(it was silent too long\)")
    journal.release("far")
    journal.wait_for("finished far")


def test_a_short_stop_makes_nobody_dead(start_worker, journal, board):
    """A worker that stands still for less than the threshold keeps its jobs."""
    Wait.perform_async("kept")
    still = start_worker("-c", "1", conf=QUICK)
    identity = ready(still)
    journal.wait_for("started kept")
    other = start_worker("-c", "1", conf=QUICK)
    ready(other)
    still.signal(signal.SIGSTOP)
    # Two surveys of the other one go by.
    stopped = board.client.zscore(KEYS.beats, identity)
    wait_until(
        lambda: board.client.time()[0] - stopped > 4, timeout=15, message="four seconds of silence"
    )
    still.signal(signal.SIGCONT)
    wait_until(lambda: board.client.zscore(KEYS.beats, identity) > stopped)
    journal.release("kept")
    journal.wait_for("finished kept")
    board.wait_until_settled()
    assert journal.count("started kept") == 1
    assert not [each for each in other.lines if "is dead" in each]


def test_a_late_owner_changes_nothing_and_goes_on_under_a_new_name(start_worker, journal, board):
    """SK-14: stopped for longer than the threshold, its jobs belong to others when it comes back."""
    Wait.perform_async("taken")
    late = start_worker("-c", "1", conf=QUICK)
    identity = ready(late)
    journal.wait_for("started taken")
    other = start_worker("-c", "2", conf=QUICK)
    ready(other)
    late.signal(signal.SIGSTOP)
    journal.wait_for("started taken", times=2, timeout=30)
    late.signal(signal.SIGCONT)
    journal.release("taken")
    journal.wait_for("finished taken", times=2)
    late.wait_for_line(rf"{identity}\) was taken for dead")
    board.wait_until_settled()
    assert board.processed == 1
    other.stop()
    Append.perform_async("after")
    journal.wait_for("after")


@pytest.mark.timeout(90)
def test_an_outage_of_redis_makes_nobody_dead(start_worker, journal, board, redis_server):
    """G64, 12.1-2: nobody can beat, so nobody is silent."""
    Wait.perform_async("through")
    first = start_worker("-c", "1", conf=QUICK)
    journal.wait_for("started through")
    second = start_worker("-c", "1", conf=QUICK, env=ELSEWHERE)
    ready(second)
    redis_server.pause()
    try:
        paused = time.monotonic()
        wait_until(lambda: time.monotonic() - paused > 9, timeout=20)
    finally:
        redis_server.resume()
    for each in (first, second):
        each.wait_for_line("is back after", timeout=20)
    started = board.client.time()[0]
    wait_until(lambda: board.client.time()[0] - started > 6, timeout=20)
    assert not [each for each in first.lines + second.lines if "is dead" in each]
    journal.release("through")
    journal.wait_for("finished through")
    assert journal.count("started through") == 1
