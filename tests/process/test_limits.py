"""Time limits and expiry, in real worker processes."""

from __future__ import annotations

import json
import time
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from django_cogworker.api import counters, stuck_jobs
from tests.limits import jobs
from tests.process.odd import KEYS
from tests.project.jobs import Append, Wait
from tests.settings import INSTALLED_APPS
from tests.support.waiting import wait_until

APP: dict[str, Any] = {"INSTALLED_APPS": [*INSTALLED_APPS, "tests.limits"]}
TIMEOUT = "django_cogworker.exceptions.JobTimeout"


def test_python_code_is_interrupted_at_its_limit_and_the_thread_goes_on(
    start_worker, journal, board
):
    """DR-4, Q2-3: one failed attempt, with the place where it was; the thread runs the next job."""
    worker = start_worker("-c", "1", conf=APP)
    jid = jobs.Loop.perform_async("a")
    payload, _ = board.retrying(jid)
    after = next(line for line in journal.lines() if line.startswith("after a "))
    assert 0.3 < float(after.split()[-1]) < 1.5  # from a moment after the limit began
    assert payload["error_class"] == TIMEOUT
    assert payload["error_message"] == "The job ran longer than its limit of 0.5 s."
    assert payload["retry_count"] == 1
    (attempt,) = board.attempts(jid)
    assert attempt["outcome"] == "retrying"
    assert "_loop_for(60)" in attempt["traceback"]
    Append.perform_async("next")
    journal.wait_for("next")
    wait_until(lambda: (board.processed, board.failed) == (1, 1))
    assert worker.stop() == 0


def test_a_job_that_swallows_the_interruption_is_interrupted_again_and_has_failed(
    start_worker, journal, board
):
    """Q2-3: what the job makes of it does not matter, also where it returns as if nothing had been."""
    start_worker("-c", "1", conf=APP)
    jid = jobs.Swallow.perform_async("a", 2)
    payload, _ = board.retrying(jid)
    assert journal.count("swallowed a 0") == journal.count("swallowed a 1") == 1
    assert (payload["error_class"], payload["retry_count"]) == (TIMEOUT, 1)
    assert (board.processed, board.failed) == (0, 1)


def test_each_time_out_is_one_attempt_until_none_is_left(start_worker, journal, board):
    """Q2-3"""
    start_worker("-c", "1", conf=APP)
    jid = jobs.Discarded.set(retry=1).perform_async("a")
    payload = board.dead(jid)
    assert payload["retry_count"] == 2
    assert journal.lines() == ["attempt 1", "asked JobTimeout 0", "attempt 2"]
    assert board.outcomes(jid) == ["retrying", "dead"]


def test_a_middleware_that_swallows_the_time_out_makes_no_success_of_it(
    start_worker, journal, board
):
    middleware = {"COGWORKER_SERVER_MIDDLEWARE": ["tests.limits.jobs.swallowing"]}
    start_worker("-c", "1", conf={**APP, **middleware})
    jid = jobs.Loop.perform_async("a")
    assert board.retrying(jid)[0]["retry_count"] == 1
    assert journal.count("middleware JobTimeout") == 1


def test_no_interruption_lands_after_the_end_of_its_job(start_worker, journal, board):
    """Many jobs that end about when their limit comes, on one thread, and between them jobs without a
    limit: each time-out is that of a job that had one.
    """
    worker = start_worker("-c", "1", conf=APP)
    jids = []
    for number in range(200):
        jids.append(jobs.Coffee.perform_async(number, 0.0170 + number % 20 * 0.0003))
        jobs.Clean.perform_async(number)
    wait_until(lambda: board.processed + board.failed >= 400, timeout=60)
    assert sum(line.startswith("clean") for line in journal.lines()) == 200
    assert board.processed + board.failed == 400
    late = {each["jid"]: each for each in board.all_retrying()}
    assert set(late) <= set(jids)
    assert {each["error_class"] for each in late.values()} == {TIMEOUT}
    assert 0 < len(late) < 200
    assert "CRITICAL" not in worker.output
    assert worker.stop() == 0


def test_a_coroutine_is_cancelled_and_cleans_up(start_worker, journal, board):
    worker = start_worker("-c", "1", conf=APP)
    begun = time.monotonic()
    jid = jobs.Coroutine.perform_async("a")
    payload, _ = board.retrying(jid)
    assert time.monotonic() - begun < 10
    assert (payload["error_class"], payload["retry_count"]) == (TIMEOUT, 1)
    assert journal.lines() == ["cancelled a", "cleaned a"]
    assert "CancelledError" in board.attempts(jid)[0]["traceback"]
    Append.perform_async("next")
    journal.wait_for("next")
    assert worker.stop() == 0


def test_the_database_connection_of_an_interrupted_job_is_closed(
    start_worker, journal, board, tmp_path
):
    start_worker(
        "-c",
        "1",
        conf={
            **APP,
            "DATABASES": {
                "default": {
                    "ENGINE": "django.db.backends.sqlite3",
                    "NAME": str(tmp_path / "db"),
                    "CONN_MAX_AGE": 600,
                }
            },
        },
    )
    jobs.Query.perform_async("one", False)
    jobs.Query.perform_async("two", False)
    jobs.Query.set(timeout=0.3).perform_async("three", True)
    journal.wait_for_lines(3)
    wait_until(lambda: board.failed == 1)
    jobs.Query.perform_async("four", False)
    one, two, three, four = (line.split() for line in journal.wait_for_lines(4))
    assert one[1] == two[1] == three[1] == four[1]
    assert one[2] == two[2] == three[2], "kept from job to job"
    assert four[2] != three[2]


def test_a_stuck_job_is_shown_and_its_worker_ends_when_the_others_have(
    start_worker, journal, board
):
    """DR-4, HU-10: no slot is lost in silence."""
    worker = start_worker("-c", "2", conf={**APP, "COGWORKER_TIMEOUT_GRACE": 0.5})
    jid = jobs.SleepInC.set(timeout=0.3).perform_async("a", 120)
    Wait.perform_async("b")
    journal.wait_for("started b")
    journal.wait_for("started a")
    worker.wait_for_line(rf"SleepInC {jid} is stuck: it did not yield")
    worker.wait_for_line(r"time\.sleep\(seconds\)")
    (shown,) = wait_until(stuck_jobs)
    assert (shown["jid"], shown["class"]) == (jid, "tests.limits.jobs.SleepInC")
    assert "time.sleep(seconds)" in shown["stack"]
    assert shown["worker"].split(":")[-2] == str(worker.pid)
    assert 0 < board.client.ttl("cogworker:stuck:jobs") <= 7 * 86_400
    worker.wait_for_line("Quiet: running jobs go on")
    Append.perform_async("for another")
    assert worker.alive
    assert "finished b" not in journal.lines()
    journal.release("b")
    assert worker.wait(20) == 0
    assert journal.count("finished b") == 1
    assert journal.count("slept a") == 0
    payload, _ = board.retrying(jid)
    assert (payload["error_class"], payload["retry_count"]) == (TIMEOUT, 1)
    assert "time.sleep(seconds)" in payload["error_message"]
    assert board.failed == 1
    assert [each["args"] for each in board.queue()] == [["for another"]]
    assert board.in_progress() == 0


def test_a_supervisor_replaces_the_worker_of_a_stuck_job(start_worker, journal, board):
    """DR-4"""
    worker = start_worker(
        "-c", "1", "--processes", "2", conf={**APP, "COGWORKER_TIMEOUT_GRACE": 0.3}
    )
    jid = jobs.SleepInC.set(timeout=0.2, retry=False).perform_async("a", 120)
    assert board.dead(jid)["retry_count"] == 1
    journal.wait_for("started a")
    Append.perform_async("next")
    journal.wait_for("next")
    assert worker.stop() == 0


def test_a_late_yield_in_a_call_of_c_is_a_time_out_too(start_worker, journal, board):
    start_worker("-c", "1", conf=APP)
    jid = jobs.SleepInC.set(timeout=0.2).perform_async("a", 1)
    payload, _ = board.retrying(jid)
    assert (payload["error_class"], payload["retry_count"]) == (TIMEOUT, 1)
    assert stuck_jobs() == []


def test_a_job_that_comes_too_late_is_dropped_and_counted(start_worker, journal, board):
    late = Append.set(expires_in=0.05).perform_async("late")
    Append.set(expires_in=600).perform_async("in time")
    (job, _) = board.queue()
    wait_until(lambda: time.time() > job["expires_at"])
    worker = start_worker("-c", "1")
    journal.wait_for("in time")
    board.wait_until_settled()
    assert journal.lines() == ["in time"]
    worker.wait_for_line(rf"Append {late} is dropped: it expired")
    assert (board.processed, board.failed) == (1, 0)
    assert counters()["expired"] == 1
    count = board.client.hgetall("cogworker:expiry:count")
    assert count[b"last_jid"] == str(late).encode()
    out = StringIO()
    call_command("cogworker", "stats", "--json", stdout=out)
    assert json.loads(out.getvalue())["expired"] == 1


def test_expiry_counts_from_the_due_time_and_drops_retries_too(start_worker, journal, board):
    due = time.time() + 600
    later = Append.set(expires_in=5).perform_at(due, "later")
    assert board.scheduled(later)[0]["expires_at"] == pytest.approx(due + 5)
    start_worker("-c", "1", conf=APP)
    Append.perform_async("up")
    journal.wait_for("up")
    # It starts in time, takes longer than it may wait, and its retry comes too late.
    jid = jobs.Discarded.set(timeout=3, expires_in=2.5).perform_async("a")
    wait_until(lambda: counters()["expired"] == 1)
    assert journal.lines() == ["up", "attempt 1", "asked JobTimeout 0"]
    assert board.client.zcard(KEYS.retry) == 0
    assert board.attempts(jid)[0]["outcome"] == "retrying"


def test_an_expired_job_frees_what_it_held(start_worker, journal, board):
    """Another feature's lock goes with the job, in the step that drops it."""
    unique = Append.set(unique="until_executed", expires_in=0.05)
    assert unique.perform_async("a")
    assert unique.perform_async("a") is None
    (job,) = board.queue()
    wait_until(lambda: time.time() > job["expires_at"])
    start_worker("-c", "1")
    wait_until(lambda: counters()["expired"] == 1, timeout=20)
    assert unique.set(expires_in=60).perform_async("a")
    journal.wait_for("a")
