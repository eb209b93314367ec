"""Jobs that kill their workers are buried, and take nobody along. Real workers, really killed."""

from __future__ import annotations

import json
import sys
import time
from functools import partial

import pytest

from django_cogworker.store.store import get_store
from django_cogworker.store.values import ExchangeRequest
from tests.killers.jobs import Kills, KillsInCompany
from tests.oddjobs.jobs import Brief, OneShot, OneShotQuick, Timed
from tests.process.dying import KILLERS, QUICK, ready
from tests.process.odd import KEYS, ODD, Board
from tests.support.memory import memory_limit
from tests.support.namespaces import own_mounts
from tests.support.waiting import wait_until
from tests.support.worker import WorkerProcess

#: Two deaths are enough.
STRICT = {**KILLERS, "COGWORKER_MAX_ORPHANINGS": 1}


def is_over(worker: WorkerProcess, board: Board) -> bool:
    """Whether the killer is buried, or at least the worker gone."""
    return not worker.alive or board.client.zcard(KEYS.dead) == 1


@pytest.mark.parametrize(
    ("way", "how"),
    [
        ("SIGKILL", "by signal 9"),
        ("limit", "by signal 9"),
        ("abort", "by signal 6"),
        ("fatal error", "by signal 6"),
        ("segfault", "by signal 11"),
        ("exit", "with exit code 3"),
        ("good exit", "with exit code 0"),
    ],
)
def test_a_job_that_kills_its_worker_is_buried_with_the_way_it_did(
    start_worker, journal, board, way, how
):
    """CE-4, SK-2"""
    jid = Kills.perform_async("k", way)
    start_worker("--processes", "2", "-c", "1", conf=STRICT)
    wait_until(lambda: board.client.zcard(KEYS.dead), timeout=30)
    record = board.dead(jid)
    assert record["error_class"].endswith("JobOrphanedError")
    assert "died 2 times" in record["error_message"]
    assert f"ended {how}" in record["error_message"]
    assert journal.lines() == ["killing k"] * 2
    Brief.perform_async("on it goes")
    journal.wait_for("on it goes")
    assert board.failed == 1


def test_a_job_that_uses_up_the_memory_is_buried(start_worker, journal, board):
    """SK-2: the kernel kills what wants more than the container may have."""
    jid = Kills.perform_async("k", "memory")
    with memory_limit(256) as limited:
        supervisor = start_worker(
            "--processes", "2", "-c", "1", conf=STRICT, python=(*limited, sys.executable)
        )
        try:
            wait_until(lambda: board.client.zcard(KEYS.dead), timeout=40)
            assert "ended by signal 9" in board.dead(jid)["error_message"]
            assert journal.lines() == ["killing k"] * 2
            Brief.perform_async("on it goes")
            journal.wait_for("on it goes")
        finally:
            supervisor.close()  # before the group can go


def fetch_under_way(identity: str, number: int) -> None:
    """A dead worker's last request for jobs, which Redis hears after its death."""
    store = get_store()
    first = int(store.client.hget(store.keys.holders, identity) or 1)
    store.exchange(ExchangeRequest(identity, first, number, ("default",), (), ()))


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.timeout(180)
def test_among_ten_running_and_many_fetched_jobs_only_the_killer_is_buried(
    start_worker, journal, board, redis_url, processes
):
    """CE-4, SK-2: within two minutes all others have run to their ends."""
    quick = [f"q{number}" for number in range(2000)]
    slow = [f"s{number}" for number in range(9)]
    Timed.perform_bulk([(each, 3.0) for each in slow])
    killer = KillsInCompany.perform_async("k")
    first = start_worker("-c", "10", conf=KILLERS)
    journal.wait_for("waiting k")
    wait_until(lambda: sum(line.startswith("begin s") for line in journal.lines()) == 9)
    Brief.perform_bulk([(each, 0.002) for each in quick])
    journal.release("k")
    first.process.wait(30)
    killed = time.monotonic()
    (hash_key,) = board.client.scan_iter(KEYS.workers("*"))
    fetch_under_way(hash_key.decode().removeprefix(KEYS.workers("")), 75)
    assert board.client.hlen(hash_key) == 85

    def all_ended() -> bool:
        lines = {" ".join(line.split()[:2]) for line in journal.lines()}
        return {*quick, *(f"end {each}" for each in slow)} <= lines

    workers = [start_worker("-c", "10", conf=KILLERS) for _ in range(processes)]

    def over() -> bool:
        for number, each in enumerate(workers):
            if not each.alive:  # as its service manager does
                workers[number] = start_worker("-c", "10", conf=KILLERS)
        return all_ended() and board.client.zcard(KEYS.dead) == 1

    wait_until(over, timeout=120 - (time.monotonic() - killed), interval=0.02)
    board.wait_until_settled()
    assert [each["jid"] for each in board.all_dead()] == [killer]
    assert journal.count("killing k") == 4
    assert board.failed == 1
    assert board.queue() == []
    assert board.client.zcard(KEYS.schedule) == 0


@pytest.mark.timeout(120)
def test_a_killer_is_buried_though_its_host_seems_to_start_anew_each_time(
    start_worker, journal, board, tmp_path
):
    """SK-2: a dyno or a pod that comes back on another machine under its name, or a machine of its own
    that starts anew with its worker. The first times are forgiven.
    """
    conf = {**STRICT, **QUICK}
    jid = Kills.perform_async("k", "SIGKILL")
    for life in range(5):
        boot = tmp_path / f"boot-{life}"
        boot.write_text(f"00000000-0000-0000-0000-00000000000{life}\n")
        mount = f'mount --bind {boot} /proc/sys/kernel/random/boot_id && exec "$@"'
        python = (*own_mounts(), "sh", "-c", mount, "sh", sys.executable)
        worker = start_worker("-c", "1", conf=conf, python=python)
        wait_until(partial(is_over, worker, board), timeout=30)
        if board.client.zcard(KEYS.dead):
            break
    assert "died 2 times" in board.dead(jid)["error_message"]
    assert journal.lines() == ["killing k"] * 3


def test_a_suspect_runs_with_no_other_job_beside_it(
    start_worker, journal, board, redis_url, make_proxy
):
    """SK-2: neither what runs already, nor what is still on its way from Redis to the worker."""
    proxy = make_proxy(redis_url)
    proxy.delay_reply(0.04)
    Brief.perform_bulk([(f"q{number}", 0.002) for number in range(1000)])
    jid = Timed.perform_async("suspect", 0.5)
    suspect = json.loads(board.client.lindex(KEYS.queue("default").jobs, 0))
    assert suspect["jid"] == jid
    board.client.lset(KEYS.queue("default").jobs, 0, json.dumps({**suspect, "orphanings": 2}))
    Brief.perform_bulk([(f"q{number}", 0.002) for number in range(1000, 2000)])
    worker = start_worker("-c", "10", conf=ODD, url=proxy.url)
    lines = journal.wait_for_lines(2002, timeout=40)
    worker.wait_for_line(rf"{jid} runs alone")
    begin, end = (
        next(at for at, each in enumerate(lines) if each.startswith(f"{word} suspect"))
        for word in ("begin", "end")
    )
    assert lines[begin + 1 : end] == []
    assert len(lines) == len(set(lines)) == 2002


# -- at most once


def test_at_most_once_jobs_that_had_started_are_buried_and_the_others_run(
    start_worker, journal, board, make_proxy, redis_url
):
    """DR-12: one runs, and of two others Redis knows that the worker has them, but the worker does
    not.
    """
    proxy = make_proxy(redis_url)
    started = OneShot.perform_async("started")
    first = start_worker("-c", "3", conf=ODD, url=proxy.url)
    identity = ready(first)
    journal.wait_for("started started")
    proxy.lose_reply(b"EVALSHA", times=None, then="hang")
    OneShotQuick.perform_bulk([("a",), ("b",)])
    # Two tickets and the mark of the one that started.
    wait_until(lambda: board.client.hlen(KEYS.workers(identity)) == 4)
    first.kill()
    assert journal.lines() == ["started started"]
    start_worker("-c", "3", conf=ODD)
    journal.wait_for("a")
    journal.wait_for("b")
    assert "at-most-once" in board.dead(started)["error_message"]
    journal.wait_for("exhausted started")
    board.wait_until_settled()
    assert sorted(journal.lines()) == ["a", "b", "exhausted started", "started started"]
    assert len(board.all_dead()) == 1
