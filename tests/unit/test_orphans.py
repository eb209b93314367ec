"""Where each job of a dead worker belongs, and who is dead on this host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from django_cogworker.exceptions import JobFailedError, JobOrphanedError
from django_cogworker.payload.unparseable import wrap
from django_cogworker.store.values import Filed, Held
from django_cogworker.worker.identity import host_facts, new_identity, process_start
from django_cogworker.worker.neighbours import host_rebooted, is_gone, read_facts, same_host
from django_cogworker.worker.orphans import Orphan, judge, runs_alone
from tests.support.needs import NOT_HERE
from tests.support.processes import kill_group
from tests.support.waiting import wait_until

LINUX = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason=f"{NOT_HERE}it takes the /proc of Linux"
)


def job(**fields: Any) -> bytes:
    return json.dumps(
        {"class": "a.B", "jid": "j", "args": [], "queue": "default", **fields}
    ).encode()


def fate(
    raw: bytes,
    *,
    marked: bool = False,
    filed: Filed | None = None,
    started: bool = True,
    counts: bool = True,
) -> Orphan:
    held = Held(1, "default", raw, marked, filed)
    return judge(held, started=started, counts=counts, limit=3, reason="signal 9")


# -- jobs


def test_a_job_that_had_not_started_is_innocent():
    """12.3-9: it goes back byte for byte, whatever its neighbours did and however often."""
    raw = job(orphanings=3, priority=7)
    orphan = fate(raw, started=False)
    assert (orphan.fate, orphan.payload, orphan.priority) == ("front", raw, 7)
    assert fate(job(at_most_once=True), started=True, marked=False).fate == "front"


def test_a_job_that_had_started_is_counted_then_isolated_then_buried():
    """CE-4, SK-2"""
    raw, fates = job(), []
    for _ in range(4):
        orphan = fate(raw)
        fates.append((orphan.fate, orphan.delay))
        raw = orphan.payload
    assert fates == [("front", 0), ("schedule", 5), ("schedule", 15), ("dead", 0)]
    record = json.loads(raw)
    assert "died 4 times" in record["error_message"]
    assert "signal 9" in record["error_message"]
    assert isinstance(orphan.error, JobOrphanedError)


def test_only_the_second_time_makes_a_suspect():
    assert [runs_alone({"orphanings": count}) for count in (0, 1, 2, 3)] == [False] * 2 + [True] * 2


def test_a_host_that_was_started_anew_counts_against_no_job():
    """Unless it happens again and again: then it may be the job that takes the host down."""
    forgiven = fate(job(orphanings=3), counts=False)
    assert forgiven.fate == "front"
    assert json.loads(forgiven.payload) == json.loads(job(orphanings=3, host_restarts=1))
    assert fate(job(orphanings=3, host_restarts=3), counts=False).fate == "dead"


def test_dr12_an_at_most_once_job_is_judged_by_its_mark_alone():
    """DR-12: also where the host was started anew; started is what Redis says."""
    raw = job(at_most_once=True)
    assert fate(raw, marked=True, started=False, counts=False).fate == "dead"
    assert fate(raw, marked=False).payload == raw


def test_what_is_no_job_goes_back_and_is_buried_whole_by_whoever_fetches_it():
    """E44"""
    assert (fate(b"junk").fate, fate(b"junk").payload) == ("front", b"junk")


def test_h110_a_job_that_failed_goes_where_its_failure_sent_it():
    """H110, I136: whatever else holds of it; its hooks hear the text of its own error."""
    record = job(error_class="x.Y", error_message="oh", retry_count=1)
    dead = fate(job(at_most_once=True), marked=True, filed=Filed("dead", 5.0, record))
    assert (dead.fate, dead.payload, dead.ran) == ("dead", record, True)
    assert isinstance(dead.error, JobFailedError)
    assert str(dead.error) == "oh"
    again = fate(job(), filed=Filed("retry", 77.0, record))
    assert (again.fate, again.delay, again.error) == ("retry", 77.0, None)


@pytest.mark.parametrize("raw", [b"junk", json.dumps(wrap(b"x", "q", ValueError())).encode()])
def test_h110_what_was_no_job_has_no_hooks(raw):
    orphan = fate(b"junk", filed=Filed("dead", 5.0, raw))
    assert (orphan.fate, orphan.payload, orphan.error) == ("dead", raw, None)


# -- workers


def test_pr2_an_identity_is_never_given_twice():
    """PR-2: a pod that restarts has the same name and often the same pid."""
    made = {new_identity() for _ in range(1000)}
    assert len(made) == 1000
    assert {each.rsplit(":", 1)[0] for each in made} == {new_identity().rsplit(":", 1)[0]}


def facts_of(pid: int) -> dict[str, Any]:
    return {**host_facts(), "pid": pid, "pid_start": process_start(pid)}


@LINUX
def test_a_process_is_gone_when_it_has_ended_or_its_pid_has_gone_to_another():
    """PR-2"""
    own = facts_of(os.getpid())
    assert not is_gone(own)
    assert is_gone({**own, "pid_start": "1"})
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        facts = facts_of(child.pid)
        assert not is_gone(facts)
        child.kill()
        wait_until(lambda: is_gone(facts), message="a zombie counts as gone")
    finally:
        kill_group(child)
        assert child.stdin
        child.stdin.close()
    assert is_gone(facts)


@pytest.mark.parametrize("facts", [{}, {"pid": 1}, {"pid": "1", "pid_start": "2"}, {"pid": None}])
def test_what_cannot_be_told_counts_as_alive(facts):
    assert not is_gone(facts)


def test_a_process_that_may_not_be_looked_at_counts_as_alive(monkeypatch):
    def refuse(path: Path) -> str:
        raise PermissionError(13, "no")

    monkeypatch.setattr(Path, "read_text", refuse)
    assert not is_gone({"pid": 1, "pid_start": "2"})


@LINUX
@pytest.mark.parametrize("differs", ["hostname", "boot_id", "pid_namespace"])
def test_pids_mean_something_only_on_the_same_host(differs):
    own = host_facts()
    assert same_host(dict(own), own)
    assert not same_host({**own, differs: "other"}, own)
    assert not same_host({key: own[key] for key in own if key != differs}, own)


@pytest.mark.parametrize(
    ("name", "boot", "rebooted"),
    [("a", "1", False), ("a", "2", True), ("b", "2", False), ("a", "", False)],
)
def test_a_host_was_started_anew_when_the_same_name_has_another_boot(name, boot, rebooted):
    own = {"hostname": "a", "boot_id": "1"}
    assert host_rebooted({"hostname": name, "boot_id": boot}, own) is rebooted


@pytest.mark.parametrize("text", ["", "junk", "[1]", '"x"', "null"])
def test_facts_that_are_none_are_empty(text):
    assert read_facts(text) == {}
