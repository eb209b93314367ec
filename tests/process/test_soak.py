"""Many mixed jobs through two workers: the counts add up, and every key has a bound or a TTL."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.oddjobs import jobs
from tests.process.odd import KEYS, ODD, Board
from tests.support.waiting import wait_until
from tests.support.worker import WorkerProcess

QUEUES = ("default", "low")


def unbounded_keys(client: Any) -> Iterator[str]:
    """What lies in Redis without a TTL and without a bound that is kept, each with the reason."""
    bounds = {
        KEYS.queues: (client.scard, len(QUEUES)),
        KEYS.processes: (client.scard, 2),
        KEYS.beats: (client.zcard, 2),
        KEYS.holders: (client.hlen, 2),
        KEYS.members: (client.hlen, 2),
        KEYS.dead: (client.zcard, 10_000),
        KEYS.due_tokens: (client.llen, 1),
        **{KEYS.queue(each).tokens: (client.llen, 1) for each in QUEUES},
    }
    single_values = {KEYS.processed, KEYS.failed, KEYS.fleet_since}
    for raw in client.scan_iter(count=1000):
        key = raw.decode()
        if not key.startswith(KEYS.prefix):
            yield f"{key} has not our prefix"
        elif client.ttl(key) >= 0 or key in single_values:
            continue
        elif key in bounds:
            size_of, most = bounds[key]
            if size_of(key) > most:
                yield f"{key} has {size_of(key)} members, not at most {most}"
        elif client.exists(key):
            yield f"{key} has neither bound nor TTL"


def run_mixed_jobs(workers: list[WorkerProcess], board: Board, number: int, spread: float) -> None:
    """Push `number` jobs of all kinds, wait for their ends, and check the books."""
    slow, failing, dying, later = number // 100, number // 20, number // 200, number // 20
    quick = number - slow - failing - dying - later
    client = board.client
    mixed, low = jobs.Mixed, jobs.Mixed.set(queue="low")
    draw = random.Random(7)
    mixed.perform_bulk([()] * (quick // 2))
    low.perform_bulk([()] * (quick - quick // 2))
    mixed.perform_bulk([(0, draw.uniform(0.005, 0.03)) for _ in range(slow)])
    jobs.Mixed.set(priority=5).perform_bulk([(draw.randint(1, 2),) for _ in range(failing // 2)])
    retried = draw.choices([1, 2], k=failing - failing // 2)
    low.perform_bulk([(each,) for each in retried])
    mixed.perform_bulk([(99,)] * dying)
    now = time.time()
    for _ in range(later):
        mixed.perform_at(now + draw.uniform(-0.5, spread), 0)

    def total() -> int:
        return board.processed + int(client.zcard(KEYS.dead))

    patience = 30 + number / 300
    wait_until(
        lambda: total() >= number, timeout=patience, message=lambda: f"{total()} of {number}"
    )
    wait_until(lambda: board.in_progress() == 0)
    draw = random.Random(7)
    for _ in range(slow):
        draw.uniform(0.005, 0.03)
    failures = sum(draw.randint(1, 2) for _ in range(failing // 2)) + sum(retried) + 3 * dying
    assert board.processed == number - dying
    assert client.zcard(KEYS.dead) == dying
    assert board.failed == failures
    hours = list(client.scan_iter("cogworker:throughput:*"))
    for field, wanted in (("processed", number - dying), ("failed", failures)):
        assert sum(int(client.hget(each, field) or 0) for each in hours) == wanted
    assert all(each["retry_count"] == 3 for each in board.all_dead())
    for key in (KEYS.schedule, KEYS.retry, *(KEYS.queue(each).jobs for each in QUEUES)):
        assert client.exists(key) == 0
    assert len({each["jid"] for each in board.all_dead()}) == dying
    assert (
        sum(1 for _ in client.scan_iter("cogworker:job_attempts:*", count=5000)) == failing + dying
    )
    assert list(unbounded_keys(client)) == []

    for each in workers:
        assert each.stop(40) == 0
    assert list(unbounded_keys(client)) == []
    for key in (KEYS.processes, KEYS.beats, KEYS.holders, KEYS.members):
        assert client.exists(key) == 0
    for each in workers:
        assert "crashed" not in each.output


@pytest.fixture
def two_workers(start_worker: Any) -> list[WorkerProcess]:
    workers = [
        start_worker(
            "-c",
            "5",
            "-q",
            "default,2",
            "-q",
            "low",
            conf=ODD,
            env={"COGWORKER_TEST_LOG_LEVEL": "CRITICAL"},
        )
        for _ in range(2)
    ]
    return workers


@pytest.mark.timeout(120)
def test_five_thousand_mixed_jobs_add_up_and_leave_no_unbounded_key(two_workers, board):
    run_mixed_jobs(two_workers, board, 5_000, 1.5)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_two_hundred_thousand_mixed_jobs_add_up_and_leave_no_unbounded_key(two_workers, board):
    run_mixed_jobs(two_workers, board, 200_000, 20.0)


def test_the_search_for_unbounded_keys_finds_them(redis_client):
    redis_client.set("cogworker:forgotten", "x")
    redis_client.set("foreign", "x")
    redis_client.sadd(KEYS.queues, *(f"q{number}" for number in range(9)))
    redis_client.set("cogworker:fine", json.dumps(1), ex=10)
    found = sorted(unbounded_keys(redis_client))
    assert [each.split()[0] for each in found] == [
        "cogworker:forgotten",
        "cogworker:queues",
        "foreign",
    ]


def test_killed_idle_workers_are_forgotten_by_every_registry(start_worker, board):
    conf = {"COGWORKER_ORPHAN_THRESHOLD": 3}
    killed = [start_worker("-c", "1", conf=conf) for _ in range(2)]
    names = {each.wait_for_line(r"works as (\S+): ")[1].encode() for each in killed}
    for each in killed:
        each.kill()
    start_worker("-c", "1", conf=conf)
    client = board.client

    def registered() -> set[bytes]:
        registries = (
            client.smembers(KEYS.processes),
            client.zrange(KEYS.beats, 0, -1),
            client.hkeys(KEYS.holders),
            client.hkeys(KEYS.members),
        )
        return names & {name for registry in registries for name in registry}

    wait_until(lambda: not registered(), timeout=25)
