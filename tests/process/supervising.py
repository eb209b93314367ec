"""Help for the tests of supervisors: who lives, what a process has open, how one makes room."""

from __future__ import annotations

import os
import time
from collections.abc import Set
from pathlib import Path
from typing import Any

from django_cogworker.api import ProcessSet
from tests.process.odd import KEYS
from tests.project.jobs import Append
from tests.support.waiting import wait_until


def living() -> set[int]:
    """The pids of the workers that beat."""
    return {each.info["pid"] for each in ProcessSet()}


def wait_for_workers(number: int, *, other_than: Set[int] = frozenset()) -> set[int]:
    """Wait until so many workers live, none of them one of `other_than`."""

    def are_there() -> bool:
        now = living()  # once: between two looks one of them may go
        return len(now) == number and not now & other_than

    wait_until(
        are_there,
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


def holder(board: Any) -> int:
    """The pid of the one worker that holds a job."""
    (identity,) = board.client.hkeys(KEYS.holders)
    return int(identity.split(b":")[1])


def check_it_waits_for(job: str, worker: Any, journal: Any) -> None:
    """The worker is about to make room: it fetches no more, waits for the job that it runs, and ends.

    Its time-out of a stop is below a second.
    """
    wait_until(lambda: all(each.is_quiet for each in ProcessSet()))
    Append.perform_async("for another worker")
    # Longer than the time-out of a stop, which would put the job back.
    until = time.monotonic() + 1
    wait_until(lambda: time.monotonic() > until)
    assert worker.alive
    journal.release(job)
    assert worker.wait(20) == 0
