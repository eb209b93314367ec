"""What an idle worker costs, how soon it wakes, and that no worker holds what another could run."""

from __future__ import annotations

import threading
import time
from typing import Any

from tests.oddjobs import jobs
from tests.process.odd import KEYS, ODD
from tests.project.jobs import Append, AppendLater, FailTimes, Wait
from tests.support.waiting import wait_until


def requests(client: Any) -> int:
    """What idle workers have sent; commands inside scripts do not count."""
    stats = client.info("commandstats")
    return sum(stats.get(f"cmdstat_{each}", {}).get("calls", 0) for each in ("blpop", "evalsha"))


def test_an_idle_worker_sends_about_one_request_a_second(start_worker, journal, board):
    worker = start_worker("-c", "10", "-q", "default", "-q", "low")
    Append.perform_async("a")
    journal.wait_for("a")
    board.wait_until_settled()
    begun, before = time.monotonic(), requests(board.client)
    threading.Event().wait(6.0)
    rate = (requests(board.client) - before) / (time.monotonic() - begun)
    assert 0.3 < rate < 2.5
    assert worker.stop() == 0


def test_an_idle_worker_takes_up_a_job_at_once(start_worker, journal):
    """E40"""
    start_worker("-c", "3", "-q", "default", "-q", "low").wait_for_line("works as")
    waits = []
    for number in range(12):
        begun = time.monotonic()
        kind = AppendLater if number % 2 else Append
        kind.perform_async(f"j{number}")
        journal.wait_for(f"j{number}")
        waits.append(time.monotonic() - begun)
    # Without the token each would wait for the next look, up to two seconds.
    assert sorted(waits)[len(waits) // 2] < 0.5
    assert sum(waits) < 6


def test_jobs_with_a_delay_and_retries_are_taken_up_when_they_are_due(start_worker, journal):
    start_worker("-c", "3").wait_for_line("works as")
    begun = time.monotonic()
    for number in range(5):
        Append.perform_in(0.3, f"j{number}")
        journal.wait_for(f"j{number}")
    assert 1.5 <= time.monotonic() - begun < 5
    begun = time.monotonic()
    FailTimes.perform_async("retried", 5)
    journal.wait_for("retried")
    assert time.monotonic() - begun < 4


def test_a_lost_token_costs_two_seconds_at_most(start_worker, journal, board):
    start_worker("-c", "1").wait_for_line("works as")
    Append.perform_async("a")
    journal.wait_for("a")
    raw = b'{"class":"tests.project.jobs.Append","args":["b"],"jid":"b","queue":"default","v":1}'
    board.client.lpush(KEYS.queue("default").jobs, raw)  # and no token
    journal.wait_for("b", timeout=6)


def test_the_busy_worker_leaves_the_jobs_to_the_idle_one(start_worker, journal, board):
    """No worker holds more than it runs, and a busy one passes its token on."""
    busy = start_worker("-c", "1")
    busy.wait_for_line("works as")
    Wait.perform_async("w")
    journal.wait_for("started w")
    start_worker("-c", "1", conf=ODD).wait_for_line("works as")
    for number in range(30):
        jobs.Brief.perform_async(f"j{number}", 0.01)
        assert board.in_progress() <= 2 + 1
    for number in range(30):
        journal.wait_for(f"j{number}")
    assert "finished in" not in busy.output
    journal.release("w")
    journal.wait_for("finished w")


def test_a_worker_of_slow_jobs_holds_no_more_than_it_runs(start_worker, journal, board):
    for number in range(40):
        jobs.Timed.perform_async(f"s{number}", 0.06)
    start_worker("-c", "3", conf=ODD)
    most = 0

    def observe() -> bool:
        nonlocal most
        most = max(most, board.in_progress())
        return len(journal.lines()) >= 80

    wait_until(observe, timeout=20)
    assert most == 3


def test_of_jobs_fetched_together_the_slow_ones_do_not_hold_up_the_rest(
    start_worker, journal, board
):
    """After a run of quick jobs more is fetched than runs; what meets a slow job is given back."""
    start_worker("-c", "1", conf=ODD)
    for _ in range(400):
        jobs.Nothing.perform_async()
    Wait.perform_async("w")
    for number in range(50):
        Append.perform_async(f"j{number}")
    journal.wait_for("started w")
    # Only the running job is left in progress; the others are where another worker can have them.
    wait_until(lambda: board.in_progress() == 1, timeout=3)
    wait_until(lambda: len(board.queue()) == 50, timeout=3)
    assert [each["args"][0] for each in board.queue()] == [f"j{number}" for number in range(50)]
    start_worker("-c", "2", conf=ODD)
    for number in range(50):
        journal.wait_for(f"j{number}")
    assert journal.count("finished w") == 0
    journal.release("w")
    journal.wait_for("finished w")
    board.wait_until_settled()
    assert board.processed == 451


def test_a_job_is_never_held_untaken_for_long(start_worker, journal, board):
    """Two workers, mixed jobs: while one processor is stuck, nothing waits in its worker's memory."""
    for number in range(300):
        jobs.Brief.perform_async(f"q{number}", 0.0)
        if number % 60 == 30:
            jobs.Timed.perform_async(f"slow{number}", 0.4)
    begun = time.monotonic()
    start_worker("-c", "1", conf=ODD)
    start_worker("-c", "1", conf=ODD)
    for number in range(300):
        journal.wait_for(f"q{number}")
    board.wait_until_settled()
    assert time.monotonic() - begun < 15
    assert board.processed == 305


def test_a_finished_job_is_acknowledged_although_no_other_comes(start_worker, journal, board):
    start_worker("-c", "2").wait_for_line("works as")
    for number in range(10):
        begun = time.monotonic()
        Append.perform_async(f"j{number}")
        journal.wait_for(f"j{number}")
        wait_until(lambda: board.in_progress() == 0, timeout=1)
        assert time.monotonic() - begun < 1


def test_two_workers_share_the_jobs(start_worker, journal, board):
    workers = [start_worker("-c", "2", conf=ODD) for _ in range(2)]
    for each in workers:
        each.wait_for_line("works as")
    jobs.Timed.perform_bulk([(f"t{number}", 0.02) for number in range(60)])
    journal.wait_for_lines(120, timeout=20)
    begun = [each.split() for each in journal.lines() if each.startswith("begin")]
    by_pid = {pid: sum(each[2] == pid for each in begun) for pid in {each[2] for each in begun}}
    assert len(begun) == 60
    assert len(by_pid) == 2
    assert min(by_pid.values()) >= 10
