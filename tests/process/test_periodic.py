"""One slot, one job: with several workers, kills, a clock that is set, and an outage across slots."""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from typing import Any

import pytest

from tests.oddjobs.clocks import FILE as CLOCK
from tests.support.waiting import wait_until

SLOT = "tests.project.jobs.Slot"
EVERY_SECOND = {"job": SLOT, "cron": "* * * * * *"}


def conf(**entry: Any) -> dict[str, Any]:
    return {
        "COGWORKER_PERIODIC": {"tick": {**EVERY_SECOND, **entry}},
        "COGWORKER_SERVER_MIDDLEWARE": ["tests.oddjobs.clocks.middleware"],
    }


def slots(journal: Any) -> list[int]:
    return [int(found[1]) for line in journal.lines() if (found := re.match(r"slot (\d+)", line))]


def wait_for_slots(journal: Any, count: int, timeout: float = 40) -> None:
    wait_until(lambda: len(set(slots(journal))) >= count, timeout=timeout, message="slots")


def assert_one_job_each(journal: Any) -> None:
    doubled = {slot: count for slot, count in Counter(slots(journal)).items() if count > 1}
    assert doubled == {}


def assert_none_missing(found: list[int]) -> None:
    ordered = sorted(set(found))
    assert ordered == list(range(ordered[0], ordered[-1] + 1))


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_each_slot_becomes_one_job(start_worker, journal, workers):
    """CE-9 M196 TQ-6"""
    args = ("-c", "2") if workers < 8 else ("-c", "2", "--processes", "8")
    for _ in range(workers if workers < 8 else 1):
        start_worker(*args, conf=conf())
    wait_for_slots(journal, 8)
    assert_one_job_each(journal)
    assert_none_missing(slots(journal))


def test_kills_cost_and_double_no_slot(start_worker, journal):
    """CE-9 SK-6"""
    start_worker("-c", "2", conf=conf())
    for round_ in range(3):
        victim = start_worker("-c", "2", conf=conf())
        victim.wait_for_line("works as")
        wait_for_slots(journal, 3 * (round_ + 1))
        victim.kill()
    before = len(set(slots(journal)))
    wait_for_slots(journal, before + 3)
    # A job that ran when its worker was killed may come twice; as a job there is one a slot.
    assert_none_missing(slots(journal))


@pytest.mark.parametrize("seconds", [600, -600])
def test_a_clock_that_is_set_moves_no_slot(start_worker, journal, board, seconds):
    """HU-8"""
    worker = start_worker("-c", "2", conf=conf())
    start_worker("-c", "2", conf=conf())
    worker.wait_for_line("works as")
    wait_for_slots(journal, 3)
    (journal.directory / CLOCK).write_text(str(seconds))
    wait_for_slots(journal, 8)
    now = board.client.time()[0]
    assert_one_job_each(journal)
    assert_none_missing(slots(journal))
    assert now - 15 <= max(slots(journal)) <= now + 1


def test_an_outage_over_many_slots_brings_one_of_them(
    start_worker, journal, make_redis_server, settings
):
    """SK-6 Q2-6 M200"""
    server = make_redis_server(appendonly="yes")
    settings.COGWORKER_REDIS = server.url
    for _ in range(2):
        start_worker("-c", "2", conf=conf(), url=server.url)
    wait_for_slots(journal, 3)
    before = max(slots(journal))
    server.kill()
    wait_until(lambda: time.time() > before + 9, timeout=20)
    server.start()
    count = len(set(slots(journal)))
    wait_for_slots(journal, count + 4)
    assert_one_job_each(journal)
    found = sorted(set(slots(journal)))
    gaps = [later - earlier for earlier, later in itertools.pairwise(found)]
    assert max(gaps) >= 6, "the missed slots did not all become jobs"
