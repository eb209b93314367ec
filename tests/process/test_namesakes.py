"""Workers with the same host name and the same process id are told apart, as in containers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from django_cogworker.worker.identity import host_facts, process_start
from django_cogworker.worker.neighbours import is_gone, same_host
from tests.process.dying import (
    ELSEWHERE,
    QUICK,
    THRESHOLD,
    UNSEEN,
    check_nobody_died,
    facts,
    identities,
    let_time_pass,
    ready,
    tombstones,
    wait_for_call,
)
from tests.process.odd import KEYS
from tests.project.jobs import Wait
from tests.support.namespaces import own_mounts, own_pids, own_pids_foreign_proc
from tests.support.needs import missing
from tests.support.worker import ROOT

#: What a dead worker's facts are changed to, beyond the host name and the pid of one that lives.
DIFFERENCES: dict[str, dict[str, str]] = {
    "start time": {"pid_start": "1"},
    "boot": {"boot_id": "00000000-0000-0000-0000-000000000000"},
    "namespace": {"pid_namespace": "pid:[1]"},
}


@pytest.mark.parametrize("difference", list(DIFFERENCES))
def test_a_dead_worker_is_told_from_a_living_one_with_its_host_name_and_pid(
    start_worker, journal, board, difference
):
    """Pids are used again, and host names too; the dead one's jobs come back, the other one's stay."""
    Wait.perform_async("dead")
    dead = start_worker("-c", "1", conf=QUICK, env=ELSEWHERE)
    journal.wait_for("started dead")
    gone = ready(dead)
    dead.kill()
    Wait.perform_async("living")
    living = start_worker("-c", "2", conf=QUICK, env={"DYNO": "host-of-both"})
    identity = ready(living)
    journal.wait_for("started living")
    # Only now, so that the two differ in nothing else.
    told = {**facts(board, identity), "started": "", **DIFFERENCES[difference]}
    assert told["pid"] == living.pid
    board.client.hset(KEYS.members, gone, json.dumps(told))
    board.client.zadd(KEYS.beats, {gone: board.client.time()[0]})
    begun = time.monotonic()
    if difference == "start time":
        board.client.sadd(KEYS.host(told["host_id"]), gone)
    journal.wait_for("started dead", times=2, timeout=40)
    assert time.monotonic() - begun < (THRESHOLD - 0.5 if difference == "start time" else UNSEEN)
    let_time_pass(board, THRESHOLD)
    assert identities(board) == {identity}
    assert tombstones(board) == [KEYS.tombstone(gone).encode()]
    for name in ("living", "dead"):
        journal.release(name)
        journal.wait_for(f"finished {name}")
    board.wait_until_settled()
    assert journal.count("started living") == 1
    assert board.processed == 2


def test_two_containers_with_one_name_and_one_pid_each(start_worker, journal, board):
    """Both are process 1 on a host of the same name: neither is taken for the other."""
    workers = []
    for name in ("dead", "living"):
        Wait.perform_async(name)
        python = (*own_pids(), sys.executable)
        workers.append(
            start_worker("-c", "2" if name == "living" else "1", conf=QUICK, python=python)
        )
        journal.wait_for(f"started {name}")
    dead, living = workers
    gone, identity = ready(dead), ready(living)
    assert gone.split(":")[:2] == identity.split(":")[:2]
    assert facts(board, gone)["host_id"] != facts(board, identity)["host_id"]
    dead.kill()
    journal.wait_for("started dead", times=2, timeout=40)
    journal.release("dead")
    journal.wait_for("finished dead")
    journal.release("living")
    journal.wait_for("finished living")
    board.wait_until_settled()
    assert journal.count("started living") == 1
    assert identities(board) == {identity}


@pytest.mark.parametrize("difference", list(DIFFERENCES)[1:])
def test_what_differs_in_boot_or_namespace_is_not_looked_up_here(difference):
    """Its pid means another process there than here."""
    own = host_facts()
    assert same_host(own, own)
    assert not same_host({**own, **DIFFERENCES[difference]}, own)
    assert not same_host({**own, "hostname": "another"}, own)


def test_a_living_worker_of_another_container_is_not_judged_by_our_processes(
    start_worker, journal, board
):
    """Not even where Redis believes that it lives on our host."""
    Wait.perform_async("a")
    inside = start_worker("-c", "1", conf=QUICK, python=(*own_pids(), sys.executable))
    journal.wait_for("started a")
    outside = start_worker("-c", "1", conf=QUICK)
    host = facts(board, ready(outside))["host_id"]
    board.client.sadd(KEYS.host(host), ready(inside))
    for _ in range(2):
        wait_for_call(board, "survey")
    check_nobody_died(board, inside, outside)
    journal.release("a")
    journal.wait_for("finished a")
    assert journal.count("started a") == 1


def told_by(prefix: tuple[str, ...], code: str, *args: str) -> Any:
    """What a Python that is started with that prefix prints as JSON."""
    answer = subprocess.run(
        [*prefix, sys.executable, "-c", code, *args],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return json.loads(answer.stdout)


HOST_FACTS = """
import json, os
from django_cogworker.worker.identity import host_facts
print(json.dumps(host_facts()))
"""

IS_GONE = """
import json, sys
from django_cogworker.worker.neighbours import is_gone
print(json.dumps([is_gone(each) for each in json.loads(sys.argv[1])]))
"""


def test_a_foreign_proc_proves_nothing():
    """Its numbers mean other processes: whoever looks there would bury those that live."""
    known = told_by(own_pids_foreign_proc(), HOST_FACTS)
    assert "host_id" not in known
    assert not same_host(known, known)
    own = host_facts()
    assert same_host(own, own)
    assert told_by(own_pids(), HOST_FACTS)["pid_start"]


def test_a_process_that_is_hidden_is_not_gone():
    """Under `hidepid`, as with systemd's `ProtectProc=invisible`, those of others are not shown."""
    here = {"pid": os.getpid(), "pid_start": process_start(os.getpid())}
    ended = subprocess.Popen(["true"])
    ended.wait()
    there = {"pid": ended.pid, "pid_start": "1"}
    assert [is_gone(here), is_gone(there)] == [False, True]
    hide = (
        "mount -t proc -o hidepid=2 proc /proc"
        " && exec setpriv --regid 65534 --clear-groups --bounding-set -sys_ptrace"
        f' sh -c \'test ! -e /proc/{os.getpid()} && exec "$@"\' sh "$@"'
    )
    prefix = (*own_mounts(), "sh", "-c", hide, "sh")
    if subprocess.run([*prefix, "true"], capture_output=True).returncode:
        missing("a /proc that hides processes")
    assert told_by(prefix, IS_GONE, json.dumps([here, there])) == [False, True]
    assert Path("/proc/self").exists()
