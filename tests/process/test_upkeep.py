"""What a worker puts right by itself: keys of the wrong type, and jobs that it holds and nobody runs."""

from __future__ import annotations

import json
import time

from tests.oddjobs.jobs import FailsDead
from tests.process.odd import KEYS, ODD
from tests.project.jobs import Append, Wait
from tests.support.waiting import wait_until

#: Rounds of the upkeep every six seconds.
QUICK = {**ODD, "COGWORKER_ORPHAN_THRESHOLD": 6}


def test_l174_a_worker_frees_its_keys_at_the_start(start_worker, journal, board):
    board.client.set(KEYS.queue("default").jobs, "wrong")
    board.client.set(KEYS.schedule, "wrong")
    worker = start_worker("-c", "1", conf=ODD)
    worker.wait_for_line(r"The key cogworker:queue:default was a string and should be a list")
    worker.wait_for_line(r"The key cogworker:schedule was a string")
    Append.perform_in(0.2, "later")
    Append.perform_async("now")
    journal.wait_for("now")
    journal.wait_for("later")
    assert worker.stop() == 0


def test_an_error_of_the_wrong_type_is_put_right_within_seconds(start_worker, journal, board):
    """H108: the failure is not lost, the job runs once, and nobody waits a minute for it."""
    worker = start_worker("-c", "2", conf=ODD)
    Append.perform_async("first")
    journal.wait_for("first")
    board.client.set(KEYS.dead, "wrong")
    jid = FailsDead.perform_async("a")
    worker.wait_for_line(r"The key cogworker:dead was a string", timeout=10)
    wait_until(lambda: board.client.zcard(KEYS.dead) == 1, timeout=15)
    assert board.dead(jid)["error_message"] == "oh"
    assert journal.count("ran a 1") == 1
    assert worker.stop() == 0


def test_names_of_workers_that_are_gone_are_taken_away(start_worker, board):
    board.client.sadd(KEYS.processes, "gone:1:aaaaaaaaaaaa", "here:1:aaaaaaaaaaaa")
    board.client.hset(KEYS.process("here:1:aaaaaaaaaaaa"), "busy", 1)
    worker = start_worker("-c", "1", conf=ODD)
    wait_until(lambda: not board.client.sismember(KEYS.processes, "gone:1:aaaaaaaaaaaa"))
    assert board.client.sismember(KEYS.processes, "here:1:aaaaaaaaaaaa")
    assert worker.stop() == 0


def test_h110_a_failure_that_cannot_be_filed_at_the_stop_is_filed_all_the_same(
    start_worker, journal, board
):
    """The key is freed while the worker stops, so the job that has run is not put back."""
    worker = start_worker("-c", "1", conf=ODD)
    Wait.perform_async("w")
    journal.wait_for("started w")
    jid = FailsDead.perform_async("a")
    board.client.set(KEYS.dead, "wrong")
    journal.release("w")
    journal.wait_for("ran a 1")
    assert worker.stop() == 0
    assert board.client.zcard(KEYS.dead) == 1
    assert board.dead(jid)["error_message"] == "oh"
    assert board.client.llen(KEYS.queue("default").jobs) == 0
    start_worker("-c", "1", "--burst", conf=ODD).wait()
    assert journal.count("ran a 1") == 1


def test_g82_a_job_that_is_held_here_and_run_by_nobody_goes_back_at_the_second_look(
    start_worker, journal, board
):
    worker = start_worker("-c", "2", conf=QUICK)
    Wait.perform_async("running")
    journal.wait_for("started running")
    (identity,) = (each.decode() for each in board.client.hkeys(KEYS.holders))
    Append.perform_async("astray")
    journal.wait_for("astray")
    job = {
        "class": Append.__module__ + ".Append",
        "args": ["astray"],
        "jid": "a" * 24,
        "retry": True,
    }
    begun = time.monotonic()
    held = f"{time.time() * 1000:.0f} default\n{json.dumps(job)}"
    board.client.hset(KEYS.workers(identity), "999999", held)
    journal.wait_for("astray", times=2, timeout=30)
    assert time.monotonic() - begun > 5, "one look is not enough: a reply may be on its way"
    worker.wait_for_line("nobody ran it; it goes back")
    assert journal.count("started running") == 1
    journal.release("running")
    journal.wait_for("finished running")
    board.wait_until_settled()
    assert worker.stop() == 0
