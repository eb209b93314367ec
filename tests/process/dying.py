"""Help for the tests of workers that die, or only seem to."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django_cogworker.store.scripts import script
from tests.process.odd import KEYS, ODD, Board
from tests.support.project import Journal
from tests.support.waiting import wait_until
from tests.support.worker import WorkerProcess

#: The worker knows the odd jobs, and those of `tests/killers`.
KILLERS: dict[str, Any] = {"INSTALLED_APPS": [*ODD["INSTALLED_APPS"], "tests.killers"]}
#: Judged silent after six seconds, and a beat a second.
THRESHOLD = 6
QUICK: dict[str, Any] = {**KILLERS, "COGWORKER_ORPHAN_THRESHOLD": THRESHOLD}
#: Seconds from the death to the new run: where the process can be looked at, and elsewhere.
SEEN = 2.0
UNSEEN = THRESHOLD + 10.0
#: As if on another host: nobody can look at its process.
ELSEWHERE = {"DYNO": "another-host"}


def ready(worker: WorkerProcess) -> str:
    """Wait until the worker works; its identity."""
    return worker.wait_for_line(r"works as (\S+): ")[1]


def stand_still(worker: WorkerProcess) -> None:
    """Stop it (SIGSTOP) and wait until it really stands: the signal alone does not wait."""
    worker.pause()
    threads = Path(f"/proc/{worker.pid}/task")
    wait_until(lambda: all(state(each / "stat") == "T" for each in threads.iterdir()))


def state(stat: Path) -> str:
    return stat.read_text().rpartition(")")[2].split()[0]


def seconds_until(happens: Callable[[], object]) -> float:
    """How long a wait takes."""
    begun = time.monotonic()
    happens()
    return time.monotonic() - begun


def rerun_after(journal: Journal, line: str, death: Callable[[], object]) -> float:
    """Seconds from the death to the second time of a line that was written once."""
    assert journal.count(line) == 1
    begun = time.monotonic()
    death()
    journal.wait_for(line, times=2, timeout=40)
    return time.monotonic() - begun


def wait_for_call(board: Board, name: str, act: Callable[[], object] = lambda: None) -> None:
    """Do `act`, and wait until Redis was told after it to run the script of that name."""
    sha = script(name).sha
    with board.client.monitor() as monitor:
        act()
        for told in monitor.listen():
            words = told["command"].split(" ", 2)
            if words[0].upper() == "EVALSHA" and words[1] == sha:
                return


def let_time_pass(board: Board, seconds: float) -> None:
    """Wait by Redis's clock: nothing that could be waited for happens meanwhile."""
    begun = board.client.time()[0]
    wait_until(lambda: board.client.time()[0] - begun > seconds, timeout=seconds + 20)


def tombstones(board: Board) -> list[bytes]:
    return list(board.client.scan_iter(KEYS.tombstone("*")))


def facts(board: Board, identity: str) -> dict[str, Any]:
    """What the worker told about its host and process."""
    told: dict[str, Any] = json.loads(board.client.hget(KEYS.members, identity))
    return told


def identities(board: Board) -> set[str]:
    """The workers that beat."""
    return {each.decode() for each in board.client.zrange(KEYS.beats, 0, -1)}


def check_nobody_died(board: Board, *workers: WorkerProcess) -> None:
    """All still have the identity they began with, and nobody buried anybody."""
    assert tombstones(board) == []
    assert identities(board) == {ready(each) for each in workers}
    for each in workers:
        assert each.alive
        assert not [line for line in each.lines if "is dead" in line or "taken for dead" in line]
