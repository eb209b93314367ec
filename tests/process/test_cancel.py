"""Cancelling and status with real workers and the command line."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from django_cogworker import api
from tests.followed.jobs import (
    DeafInC,
    Followed,
    FollowedWait,
    ForeverAwaiting,
    ForeverInPython,
    ReportUntilCancelled,
)
from tests.project.jobs import Append


def run(*words: str) -> str:
    out = StringIO()
    call_command("cogworker", *words, stdout=out)
    return out.getvalue()


def test_dr9_the_worker_that_runs_a_job_hears_that_it_was_cancelled(start_worker, journal, board):
    """DR-9: the worker is busy with it, so it hears with its next beat."""
    start_worker("-c", "1")
    jid = str(ReportUntilCancelled.set(track=True).perform_async("a"))
    journal.wait_for("started a")
    assert "Asked" in run("cancel", jid)
    assert api.wait(jid, 30).state == "cancelled"
    board.wait_until_settled()
    assert (board.failed, board.in_sets(jid)) == (0, False)


def test_the_jobs_of_a_killed_worker_are_queued_again_and_their_status_tells(
    start_worker, journal, board
):
    worker = start_worker("-c", "1")
    jid = str(FollowedWait.perform_async("a"))
    journal.wait_for("started a")
    assert api.find_job(jid).state == "working"
    worker.kill()
    start_worker("-c", "1")
    journal.wait_for("started a", times=2)
    found = api.find_job(jid)
    assert (found.state, found.worker != "") == ("working", True)
    journal.release("a")
    assert api.wait(jid, 20).state == "complete"


def test_a_job_that_a_stop_puts_back_is_queued(start_worker, journal):
    worker = start_worker("-c", "1", conf={"COGWORKER_SHUTDOWN_TIMEOUT": 0.1})
    jid = str(FollowedWait.perform_async("a"))
    journal.wait_for("started a")
    worker.stop()
    assert api.find_job(jid).state == "queued"


def test_the_command_line_finds_and_cancels(redis_url):
    jid = str(Append.perform_in(500, "a"))
    told = json.loads(run("find", jid, "--json"))
    assert (told["place"], told["queue"], told["found"]) == ("schedule", "default", True)
    assert "Removed" in run("cancel", jid)
    with pytest.raises(
        CommandError, match=f"Job {jid} was not found; it was looked for everywhere"
    ):
        run("find", jid)
    tracked = str(Followed.perform_async("b"))
    assert "queued" in run("find", tracked)
    run("cancel", tracked)
    assert "cancelled" in run("find", tracked)
    assert "over already" in run("cancel", tracked)


@pytest.mark.parametrize("job", [ForeverInPython, ForeverAwaiting])
@pytest.mark.parametrize("async_queue", [False, True])
def test_with_force_a_running_job_is_interrupted(start_worker, journal, board, job, async_queue):
    """DR-9: it is neither failed nor dead, and its thread runs the next job."""
    worker = start_worker(
        "-c", "1", conf={"COGWORKER_ASYNC_QUEUES": ["default"] if async_queue else []}
    )
    jid = str(job.perform_async("a"))
    journal.wait_for("started a")
    assert "Asked" in run("cancel", jid, "--force")
    assert api.wait(jid, 30).state == "cancelled"
    assert journal.count("tidied a") == 1
    FollowedWait.perform_async("next")
    journal.wait_for("started next")
    journal.release("next")
    board.wait_until_settled()
    assert (board.failed, board.in_sets(jid)) == (0, False)
    worker.wait_for_line(rf"{jid} is dropped: it ended because somebody cancelled it")
    assert worker.stop() == 0


def test_force_comes_after_a_mere_wish_too_and_waiting_jobs_are_just_removed(
    start_worker, journal, board
):
    start_worker("-c", "1")
    jid = str(ForeverInPython.perform_async("a"))
    journal.wait_for("started a")
    assert api.cancel(str(Append.perform_async("b")), force=True) == "removed"
    assert api.cancel(jid) == "asked"
    assert api.cancel(jid, force=True) == "asked"
    assert api.wait(jid, 30).state == "cancelled"
    Append.perform_async("c")
    journal.wait_for("c")
    assert journal.count("b") == 0


def test_a_job_that_force_cannot_reach_is_stuck_and_its_worker_makes_room(
    start_worker, journal, board
):
    worker = start_worker("-c", "2", conf={"COGWORKER_TIMEOUT_GRACE": 0.3})
    jid = str(DeafInC.perform_async("a"))
    journal.wait_for("started a")
    api.cancel(jid, force=True)
    worker.wait_for_line(rf"DeafInC {jid} is stuck: it did not yield to JobCancelled")
    assert worker.wait(20) == 0
    assert api.wait(jid, 10).state == "cancelled"
    assert (board.failed, board.in_sets(jid), board.in_progress()) == (0, False, 0)
    (shown,) = api.stuck_jobs()
    assert (shown["jid"], "cancelled" in shown["reason"]) == (jid, True)
