"""CE-16: what features promise holds for coroutines on the loop as for any other job. In real workers."""

from __future__ import annotations

from typing import Any

from django_cogworker import api
from django_cogworker.api.history import History
from tests.asyncjobs import jobs, tasks
from tests.process.coroutines import start
from tests.project.jobs import Wait
from tests.support.waiting import wait_until


def locks() -> list[str]:
    return [each.jid for each in api.unique_locks()]


def known(jid: str) -> api.JobStatus:
    found = api.status(jid)
    assert found is not None
    return found


def test_a_coroutine_has_its_lock_its_status_its_result_and_its_record(
    start_worker, journal, board
):
    start(start_worker)
    jid = str(tasks.Answers.perform_async("a"))
    assert tasks.Answers.perform_async("a") is None
    journal.wait_for("started a 1")
    wait_until(lambda: known(jid).percent == 50)
    assert (known(jid).state, known(jid).message, known(jid).stored) == (
        "working",
        "half",
        {"mark": "a"},
    )
    assert locks() == [jid]
    journal.release("a")
    assert api.result(jid, timeout=10) == {"name": "a"}
    board.wait_until_settled()
    assert locks() == []
    (record,) = History().page().entries
    assert (record.jid, record.status, record.args, record.attempt) == (jid, "success", ["a"], 1)
    # What is kept of the first stands in nobody's way (AR-11).
    assert tasks.Answers.perform_async("a")
    assert api.result(jid, timeout=1) == {"name": "a"}


def test_each_time_out_of_a_coroutine_is_one_attempt_and_frees_its_lock_at_the_last(
    start_worker, journal, board
):
    """Q2-3"""
    start(start_worker)
    jid = str(tasks.Answers.set(timeout=0.3).perform_async("a"))
    journal.wait_for("started a 1")
    journal.wait_for("started a 2")
    assert board.dead(jid)["retry_count"] == 2
    assert board.outcomes(jid) == ["retrying", "dead"]
    assert (known(jid).state, known(jid).error_class.rpartition(".")[2]) == ("dead", "JobTimeout")
    assert locks() == []
    assert History().sizes() == {"all": 2, "success": 0, "failed": 2}
    assert board.failed == 2


def test_a_coroutine_that_holds_up_the_loop_beyond_its_limit_is_shown_and_its_worker_makes_room(
    start_worker, journal, board
):
    """DR-4, HU-10: nothing can interrupt it, so no slot is lost in silence, nor are the jobs beside it."""
    worker = start(start_worker, COGWORKER_TIMEOUT_GRACE=0.5)
    waits = jobs.Waits.perform_async("w")
    journal.wait_for("started w")
    jid = jobs.Blocks.set(timeout=0.3).perform_async("b")
    journal.wait_for("blocking b")
    Wait.perform_async("s")
    journal.wait_for("started s")
    (shown,) = wait_until(api.stuck_jobs)
    assert (shown["jid"], shown["class"]) == (jid, "tests.asyncjobs.jobs.Blocks")
    assert "wait_for_file" in shown["stack"]
    worker.wait_for_line("Quiet: running jobs go on")
    journal.release("s")
    journal.wait_for("finished s")
    # The other coroutine cannot go on in there: it is not waited for, and goes back.
    assert worker.wait(20) == 0
    assert board.retrying(jid)[0]["error_class"].endswith("JobTimeout")
    assert [each["jid"] for each in board.queue("hooks")] == [waits]
    assert board.in_progress() == 0


def test_a_coroutine_is_cancelled_wherever_it_is_and_its_lock_goes_with_it(
    start_worker, journal, board
):
    """DR-9: waiting, scheduled and running."""
    waiting = str(tasks.Answers.perform_async("a"))
    scheduled = str(tasks.Answers.perform_in(600, "b"))
    assert [api.cancel(each) for each in (waiting, scheduled)] == ["removed", "removed"]
    assert locks() == []
    start(start_worker)
    running = str(tasks.EndsWhenCancelled.perform_async("c"))
    journal.wait_for("started c")
    assert api.cancel(running) == "asked"
    assert api.wait(running, 30).state == "cancelled"
    board.wait_until_settled()
    assert locks() == []
    assert (board.failed, board.in_sets(running)) == (0, False)
    states: dict[str, Any] = {each: known(each).state for each in (waiting, scheduled)}
    assert set(states.values()) == {"cancelled"}
    assert journal.lines() == ["started c"]
