"""The supervisor: several worker processes under one parent. Real processes, really killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Set
from pathlib import Path

import pytest

from django_cogworker.api import ProcessSet, losses
from tests.process.odd import KEYS
from tests.project.jobs import Append, Wait
from tests.support.waiting import wait_until


def living() -> set[int]:
    """The pids of the workers that beat."""
    return {each.info["pid"] for each in ProcessSet()}


def wait_for_workers(number: int, *, other_than: Set[int] = frozenset()) -> set[int]:
    """Wait until so many workers live, none of them one of `other_than`."""
    wait_until(
        lambda: len(living()) == number and not living() & other_than,
        timeout=30,
        message=lambda: f"{number} workers other than {other_than}, not {living()}",
    )
    return living()


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def inodes(pid: int) -> set[str]:
    """The sockets that the process has open."""
    links = [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()]
    return {each[8:-1] for each in links if each.startswith("socket:")}


def tcp_inodes() -> set[str]:
    return {line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]}


def holder(board) -> int:
    """The pid of the one worker that holds a job."""
    (identity,) = board.client.hkeys(KEYS.holders)
    return int(identity.split(b":")[1])


def test_three_processes_share_the_work_and_stop_together(start_worker, journal, board):
    """K158"""
    for name in "abc":
        Wait.perform_async(name)
    supervisor = start_worker("--processes", "3", "-c", "1")
    for name in "abc":
        journal.wait_for(f"started {name}")
    assert len(wait_for_workers(3)) == 3
    for name in "abc":
        journal.release(name)
        journal.wait_for(f"finished {name}")
    assert supervisor.stop() == 0
    assert living() == set()
    board.wait_until_settled()
    assert board.processed == 3


def test_a_killed_child_is_replaced_and_its_job_runs_again_at_once(start_worker, journal, board):
    """G81, CE-4: the supervisor tells the others, so nobody waits for a beat."""
    supervisor = start_worker("--processes", "2", "-c", "1")
    before = wait_for_workers(2)
    Wait.perform_async("a")
    journal.wait_for("started a")
    victim = holder(board)
    killed = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    journal.wait_for("started a", times=2)
    assert time.monotonic() - killed < 5
    supervisor.wait_for_line(rf"{victim} .*signal 9")
    assert victim not in wait_for_workers(2, other_than={victim})
    assert len(before & living()) == 1
    wait_until(losses)
    assert [(each["pid"], each["how"]) for each in losses()] == [(victim, "signal 9")]
    journal.release("a")
    journal.wait_for("finished a")
    assert supervisor.stop() == 0


def test_children_stop_when_their_supervisor_is_killed(start_worker, journal, board):
    supervisor = start_worker("--processes", "2", "-c", "1")
    children = wait_for_workers(2)
    Wait.perform_async("a")
    journal.wait_for("started a")
    os.kill(supervisor.pid, signal.SIGKILL)
    journal.release("a")
    journal.wait_for("finished a")
    wait_until(lambda: not any(map(runs, children)), timeout=20)
    board.wait_until_settled()
    assert board.processed == 1
    assert living() == set()


@pytest.mark.timeout(90)
def test_usr2_replaces_one_after_the_other_and_jobs_go_on(start_worker, journal, board):
    supervisor = start_worker("--processes", "3", "-c", "1")
    before = wait_for_workers(3)
    fewest = 3
    supervisor.signal(signal.SIGUSR2)
    sent = 0

    def rolled() -> bool:
        nonlocal fewest, sent
        Append.perform_async(f"n{sent}")
        sent += 1
        now = {pid for pid in before if runs(pid)} | living()
        fewest = min(fewest, len({pid for pid in now if runs(pid)}))
        return "run the new code" in supervisor.output

    wait_until(rolled, timeout=60)
    assert fewest >= 2
    assert len(wait_for_workers(3, other_than=before)) == 3
    for number in range(sent):
        journal.wait_for(f"n{number}")
    assert supervisor.stop() == 0
    assert len(journal.lines()) == sent


def test_a_worker_ends_after_its_number_of_jobs_and_another_takes_over(start_worker, journal):
    """CE-5, TQ-11"""
    supervisor = start_worker("--processes", "2", "-c", "1", "--max-jobs", "3")
    before = wait_for_workers(2)
    Append.perform_bulk([(f"n{number}",) for number in range(20)])
    for number in range(20):
        journal.wait_for(f"n{number}")
    wait_for_workers(2, other_than=before)
    assert supervisor.stop() == 0
    assert len(journal.lines()) == 20


def test_a_single_worker_ends_after_its_number_of_jobs(start_worker, journal):
    for number in range(4):
        Append.perform_async(f"n{number}")
    worker = start_worker("-c", "1", "--max-jobs", "2")
    assert worker.wait(20) == 0
    assert len(journal.lines()) >= 2


def test_the_supervisor_has_no_connection_of_its_own(start_worker, board):
    supervisor = start_worker("--processes", "2", "-c", "1")
    wait_for_workers(2)
    assert inodes(supervisor.pid) & tcp_inodes() == set()
    child = next(iter(living()))
    assert inodes(child) & tcp_inodes() != set()
    assert supervisor.stop() == 0


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--processes", "0"), "--processes is 0; it takes a whole number from 1"),
        (("--max-jobs", "0"), "--max-jobs is 0; it takes a whole number from 1"),
        (("--max-memory", "1"), "would be reached at once"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(start_worker, args, text):
    worker = start_worker(*args)
    assert worker.wait(20) == 1
    assert text in worker.output
