"""One slot, one job: with several workers, kills, a clock that is set, and an outage across slots."""

from __future__ import annotations

import itertools
import json
import re
import time
from typing import Any

import pytest

from tests.oddjobs.clocks import FILE as CLOCK
from tests.oddjobs.gates import FILE as GATE
from tests.support.waiting import wait_until

SLOT = "tests.project.jobs.Slot"
EVERY_SECOND = {"job": SLOT, "cron": "* * * * * *"}


def conf(**entry: Any) -> dict[str, Any]:
    return {
        "COGWORKER_PERIODIC": {"tick": {**EVERY_SECOND, **entry}},
        "COGWORKER_SERVER_MIDDLEWARE": ["tests.oddjobs.clocks.middleware"],
        "COGWORKER_CLIENT_MIDDLEWARE": ["tests.oddjobs.gates.middleware"],
    }


def claim_together(journal: Any, workers: int) -> None:
    """Have so many workers reach each claim before anyone makes it."""
    (journal.directory / GATE).write_text(str(workers))


def runs(journal: Any) -> list[tuple[int, str]]:
    """Slot and jid of each run."""
    found = (re.match(r"slot (\d+) (\w+)", line) for line in journal.lines())
    return [(int(each[1]), each[2]) for each in found if each]


def slots(journal: Any) -> list[int]:
    return [slot for slot, _ in runs(journal)]


def wait_for_slots(journal: Any, count: int, timeout: float = 40) -> None:
    wait_until(lambda: len(set(slots(journal))) >= count, timeout=timeout, message="slots")


def assert_one_job_each(journal: Any, together: int = 0) -> None:
    """No slot had two jobs, though at least so often several workers were about to claim the same."""
    jobs: dict[int, set[str]] = {}
    for slot, jid in runs(journal):
        jobs.setdefault(slot, set()).add(jid)
    assert {slot: jids for slot, jids in jobs.items() if len(jids) > 1} == {}
    met = {line for line in journal.lines() if line.startswith("together")}
    assert len(met) >= together


def assert_none_missing(found: list[int]) -> None:
    ordered = sorted(set(found))
    assert ordered == list(range(ordered[0], ordered[-1] + 1))


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_each_slot_becomes_one_job(start_worker, journal, workers):
    """CE-9 M196 TQ-6"""
    claim_together(journal, workers)
    args = ("-c", "2") if workers < 8 else ("-c", "2", "--processes", "8")
    for _ in range(workers if workers < 8 else 1):
        start_worker(*args, conf=conf())
    wait_for_slots(journal, 8)
    assert_one_job_each(journal, together=3)
    assert_none_missing(slots(journal))


def test_kills_cost_and_double_no_slot(start_worker, journal):
    """CE-9 SK-6"""
    claim_together(journal, 2)
    start_worker("-c", "2", conf=conf())
    for round_ in range(3):
        victim = start_worker("-c", "2", conf=conf())
        victim.wait_for_line("works as")
        wait_for_slots(journal, 3 * (round_ + 1))
        victim.kill()
    before = len(set(slots(journal)))
    wait_for_slots(journal, before + 3)
    # A job that ran when its worker was killed may run twice; as a job there is one a slot.
    assert_one_job_each(journal, together=2)
    assert_none_missing(slots(journal))


@pytest.mark.parametrize("seconds", [600, -600])
def test_a_clock_that_is_set_moves_no_slot(start_worker, journal, board, seconds):
    """HU-8"""
    claim_together(journal, 2)
    worker = start_worker("-c", "2", conf=conf())
    start_worker("-c", "2", conf=conf())
    worker.wait_for_line("works as")
    wait_for_slots(journal, 3)
    (journal.directory / CLOCK).write_text(str(seconds))
    wait_for_slots(journal, 8)
    now = board.client.time()[0]
    assert_one_job_each(journal, together=3)
    assert_none_missing(slots(journal))
    assert now - 15 <= max(slots(journal)) <= now + 1


def test_an_outage_over_many_slots_brings_one_of_them(
    start_worker, journal, make_redis_server, settings
):
    """SK-6 Q2-6 M200"""
    claim_together(journal, 2)
    server = make_redis_server(appendonly="yes")
    settings.COGWORKER_REDIS = server.url
    for _ in range(2):
        start_worker("-c", "2", conf=conf(), url=server.url)
    wait_for_slots(journal, 3)
    before = max(slots(journal))
    server.kill()
    wait_until(lambda: time.time() > before + 20, timeout=40)
    server.start()
    count = len(set(slots(journal)))
    wait_for_slots(journal, count + 4)
    assert_one_job_each(journal, together=3)
    found = sorted(set(slots(journal)))
    gaps = [later - earlier for earlier, later in itertools.pairwise(found)]
    assert max(gaps) >= 6, "the missed slots did not all become jobs"
    raw: Any = server.client().lrange("cogworker:periodic:ledger:tick", 0, -1)
    left_out = [line for each in raw if "first" in (line := json.loads(each))]
    assert max(each["count"] for each in left_out) >= 5, "the ledger tells of them"


def test_a_run_that_died_with_its_worker_is_back_before_its_entry_claims_a_slot(
    start_worker, journal, board
):
    """12.1-3 G78: a whole fleet was down for so long that the lock has ended, and the next worker has to
    watch for a while before it may take the dead one for dead.
    """
    entry = {"job": "tests.project.jobs.Wait", "cron": "* * * * * *", "args": ["w"]}
    settings = {**conf(**entry, unique_run=True), "COGWORKER_ORPHAN_THRESHOLD": 6}
    first = start_worker("-c", "2", conf=settings)
    journal.wait_for("started w")
    client, lock = board.client, "cogworker:periodic:running:tick"
    jid = client.get(lock)
    assert 0 < client.ttl(lock) <= 126, "if nobody can bring it back it blocks no slot for long"
    first.kill()
    (identity,) = client.hkeys("cogworker:holders")
    client.hset("cogworker:members", identity, "{}")  # as if it had run on another host
    client.zadd("cogworker:beats", {identity: time.time() - 200})
    client.delete(lock, "cogworker:fleet_since", "cogworker:fleet_beat")

    second = start_worker("-c", "2", conf=settings)
    wait_until(lambda: journal.count("started w") == 2, timeout=40)
    lines = map(json.loads, client.lrange("cogworker:periodic:ledger:tick", 0, -1))
    assert [each["jid"] for each in lines if "jid" in each] == [jid.decode()]
    assert client.get(lock) == jid
    journal.release("w")
    second.stop()


def test_keys_of_the_wrong_type_are_put_right_and_the_entry_runs(start_worker, journal, board):
    """L178 M190"""
    for each in ("running:tick", "ledger:tick", "entries"):
        board.client.sadd(f"cogworker:periodic:{each}", "wrong")
    board.client.set("cogworker:periodic:disabled", "wrong")
    worker = start_worker("-c", "2", conf=conf(unique_run=True))
    worker.wait_for_line(
        r"The key cogworker:periodic:running:tick was a set and should be a string"
    )
    wait_for_slots(journal, 2)
    (last,) = board.client.scan_iter("cogworker:periodic:last:tick:*")
    board.client.delete(last)
    board.client.sadd(last, "wrong")
    worker.wait_for_line("begins anew after slot")
    wait_for_slots(journal, len(set(slots(journal))) + 2)
    assert_one_job_each(journal)
