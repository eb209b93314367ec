"""More of the supervisor: what it leaves alone, whom it kills, and what is left when it is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from django_cogworker.api import losses
from tests.oddjobs.jobs import Looks
from tests.process.odd import KEYS, ODD
from tests.process.supervising import (
    check_it_waits_for,
    holder,
    inodes,
    living,
    runs,
    tcp_inodes,
    wait_for_workers,
)
from tests.project.jobs import Append, Wait
from tests.support.waiting import wait_until


def files(pid: int) -> set[str]:
    """What the process has open."""
    return {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()}


def test_only_the_workers_open_the_database(start_worker, board, tmp_path):
    """Also not after it has executed itself anew."""
    database = tmp_path / "db.sqlite3"
    setting = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(database), "CONN_MAX_AGE": None}
    conf = {**ODD, "DATABASES": {"default": setting}}
    supervisor = start_worker("--processes", "2", "-c", "1", conf=conf)
    before = wait_for_workers(2)
    for number in range(4):
        Looks.perform_async(f"n{number}")  # it fails, as there is no table; the connection stays
    wait_until(lambda: board.failed == 4)
    assert any(str(database) in files(pid) for pid in before)
    assert str(database) not in files(supervisor.pid)
    supervisor.signal(signal.SIGUSR2)
    supervisor.wait_for_line("All 2 workers run the new code", timeout=40)
    wait_for_workers(2, other_than=before)
    assert str(database) not in files(supervisor.pid)
    assert inodes(supervisor.pid) & tcp_inodes() == set()
    assert supervisor.stop() == 0


def test_running_jobs_end_before_a_worker_that_has_run_its_number_goes(
    start_worker, journal, board
):
    """CE-5: `--max-jobs` does not put back what runs, however short the time-out of a stop is."""
    Wait.perform_async("long")
    worker = start_worker("-c", "2", "--max-jobs", "1", conf={"COGWORKER_SHUTDOWN_TIMEOUT": 0.2})
    journal.wait_for("started long")
    Append.perform_async("a")
    journal.wait_for("a")
    worker.wait_for_line(r"1 jobs have run \(--max-jobs\)")
    check_it_waits_for("long", worker, journal)
    assert journal.lines() == ["started long", "a", "finished long"]
    assert board.processed == 2
    assert len(board.queue()) == 1


@pytest.mark.timeout(90)
def test_a_straggler_does_not_hold_up_the_new_code(start_worker, journal, board):
    """It is killed and replaced like the others, its job runs elsewhere, and it is on record."""
    supervisor = start_worker(
        "--processes", "2", "-c", "1", conf={"COGWORKER_SHUTDOWN_TIMEOUT": 0.5}
    )
    before = wait_for_workers(2)
    Wait.perform_async("a")
    journal.wait_for("started a")
    stuck = holder(board)
    os.kill(stuck, signal.SIGSTOP)
    supervisor.signal(signal.SIGUSR2)
    supervisor.wait_for_line(f"Worker {stuck} does not stop; it is killed", timeout=40)
    supervisor.wait_for_line("All 2 workers run the new code", timeout=40)
    wait_for_workers(2, other_than=before)
    # A worker that is replaced meanwhile may have put it back once more.
    wait_until(lambda: journal.count("started a") >= 2)
    journal.release("a")
    journal.wait_for("finished a")
    assert [(each["pid"], each["how"]) for each in losses()] == [(stuck, "signal 9")]
    assert supervisor.stop() == 0
    assert board.processed == 1
    assert board.in_progress() == 0


def test_nothing_is_lost_when_the_supervisor_is_killed(start_worker, journal, board):
    """What does not end in time goes back to its queue, as with any stop."""
    for name in ("short", "endless"):
        Wait.perform_async(name)
    supervisor = start_worker("--processes", "2", "-c", "1", conf={"COGWORKER_SHUTDOWN_TIMEOUT": 2})
    children = wait_for_workers(2)
    for name in ("short", "endless"):
        journal.wait_for(f"started {name}")
    Append.perform_bulk([(f"n{number}",) for number in range(5)])
    os.kill(supervisor.pid, signal.SIGKILL)
    journal.release("short")
    wait_until(lambda: not any(map(runs, children)), timeout=30)
    assert living() == set()
    assert board.in_progress() == 0
    assert board.client.hlen(KEYS.holders) == 0
    waiting = [each["args"][0] for each in board.queue()]
    ended = [line for line in journal.lines() if not line.startswith("started")]
    assert waiting[0] == "endless"
    assert sorted([*waiting, *ended]) == ["endless", "finished short", *(f"n{n}" for n in range(5))]
    assert board.processed == len(ended)
