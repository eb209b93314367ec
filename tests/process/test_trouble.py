"""Redis trouble under load: the worker goes on by itself, no job is lost, none runs twice.

CE-1, AR-1, HU-9, DR-3: each trouble comes several times while jobs run. Redis keeps its data on
disk, so even its sudden death loses nothing that it answered for.
"""

from __future__ import annotations

import itertools
import signal
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
import redis

from tests.oddjobs import jobs
from tests.process.odd import KEYS, ODD, Board
from tests.project.jobs import Append
from tests.support.proxy import RedisProxy
from tests.support.redis_server import RedisServer
from tests.support.waiting import wait_until
from tests.support.worker import WorkerProcess

CONF = {**ODD, "COGWORKER_ORPHAN_THRESHOLD": 30}
JOBS = 900


@pytest.fixture
def server(make_redis_server: Callable[..., RedisServer], settings: Any) -> RedisServer:
    started = make_redis_server(
        appendonly="yes",
        appendfsync="everysec",
        # So that a start has a phase in which it says LOADING.
        key_load_delay=100,
        loading_process_events_interval_bytes=1024,
    )
    settings.COGWORKER_REDIS = started.url
    return started


def push_load(number: int = JOBS) -> None:
    jobs.Brief.perform_bulk([(f"j{each}",) for each in range(number)])


def check_all_ran_once(
    journal: Any, server: RedisServer, worker: WorkerProcess, number: int = JOBS
) -> None:
    def all_ran() -> bool:
        return len(set(journal.lines())) >= number

    wait_until(all_ran, timeout=40, message=lambda: f"all of {number}, not {len(journal.lines())}")
    board = Board(server.client())
    wait_until(lambda: board.in_progress() == 0, timeout=15, message="nothing in progress")
    assert [line for line, times in Counter(journal.lines()).items() if times > 1] == []
    assert board.processed == number
    assert board.failed == 0
    assert board.queue() == []
    assert worker.alive
    Append.perform_async("and on it goes")
    journal.wait_for("and on it goes")
    assert "crashed" not in worker.output
    assert "failed at its own work" not in worker.output


def told(worker: WorkerProcess) -> tuple[int, int]:
    """How often the log says that Redis went, and that it came back."""
    return (
        len([each for each in worker.lines if " is away (" in each]),
        len([each for each in worker.lines if " is back after " in each]),
    )


def restart(server: RedisServer) -> None:
    server.restart()


def kill(server: RedisServer) -> None:
    server.restart(kill=True)


def freeze(server: RedisServer) -> None:
    server.pause()
    threading.Event().wait(0.5)
    server.resume()


def debug_sleep(server: RedisServer) -> None:
    server.client().execute_command("DEBUG", "SLEEP", "0.5")


def kill_clients(server: RedisServer) -> None:
    client = server.client()
    for _ in range(5):
        with suppress(redis.ConnectionError):  # it kills its own connection too
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")


def read_only(server: RedisServer) -> None:
    client = server.client()
    client.replicaof("127.0.0.1", "1")
    threading.Event().wait(0.5)
    client.replicaof("NO", "ONE")


def out_of_memory(server: RedisServer) -> None:
    client = server.client()
    client.config_set("maxmemory", "1")
    threading.Event().wait(0.5)
    client.config_set("maxmemory", "0")


def flush_scripts(server: RedisServer) -> None:
    server.client().script_flush()


@pytest.mark.parametrize(
    "trouble",
    [restart, kill, freeze, debug_sleep, kill_clients, read_only, out_of_memory, flush_scripts],
)
def test_redis_trouble_under_load_costs_no_job_and_no_worker(
    start_worker, journal, server, trouble
):
    """CE-1, AR-1, HU-9, DR-3"""
    push_load()
    worker = start_worker("-c", "4", conf=CONF, url=server.url)
    for at in (JOBS // 9, JOBS * 4 // 9, JOBS * 7 // 9):
        journal.wait_for_lines(at)
        trouble(server)
    check_all_ran_once(journal, server, worker)
    wait_until(lambda: told(worker)[0] == told(worker)[1], message="as often back as away")
    away, _ = told(worker)
    assert away <= (15 if trouble is kill_clients else 3)
    if trouble in (freeze, debug_sleep, flush_scripts):
        assert away == 0
    if trouble in (restart, kill):
        assert away == 3
    if trouble is read_only:
        assert away >= 1  # refusals that follow each other closely are one story
    assert worker.stop() == 0


def test_a_freeze_longer_than_the_time_out_is_survived(start_worker, journal, server):
    """CE-1"""
    push_load(400)
    worker = start_worker("-c", "4", conf=CONF, url=server.url)
    journal.wait_for_lines(100)
    server.pause()
    worker.wait_for_line("is away", timeout=20)
    server.resume()
    check_all_ran_once(journal, server, worker, 400)
    assert told(worker) == (1, 1)


@pytest.mark.parametrize("refusal", ["READONLY", "OOM"])
def test_an_idle_worker_tells_of_refused_writes_once(start_worker, journal, server, refusal):
    """HU-9: reads that go well are no sign that it is over."""
    worker = start_worker("-c", "2", conf={**CONF, "COGWORKER_ORPHAN_THRESHOLD": 3}, url=server.url)
    worker.wait_for_line("works as")
    client: Any = server.client()
    if refusal == "READONLY":
        client.replicaof("127.0.0.1", "1")
    else:
        client.config_set("maxmemory", "1")
    worker.wait_for_line(r"is away \(")

    def calls() -> int:
        return int(client.info("commandstats")["cmdstat_evalsha"]["calls"])

    before = calls()
    wait_until(lambda: calls() > before + 8, timeout=20)
    assert told(worker) == (1, 0)
    assert calls() < before + 40
    if refusal == "READONLY":
        client.replicaof("NO", "ONE")
    else:
        client.config_set("maxmemory", "0")
    worker.wait_for_line("is back after")
    Append.perform_async("a")
    journal.wait_for("a")
    assert told(worker) == (1, 1)


def test_a_worker_without_redis_does_not_spin(start_worker, journal, server):
    """HU-9"""
    worker = start_worker("-c", "2", conf=CONF, url=server.url)
    worker.wait_for_line("works as")
    server.stop()
    worker.wait_for_line("is away")
    ticks = cpu_seconds(worker.pid)
    threading.Event().wait(2.0)
    assert cpu_seconds(worker.pid) - ticks < 0.5
    before = len(worker.lines)
    server.start()
    worker.wait_for_line("is back after")
    assert len(worker.lines) <= before + 1
    Append.perform_async("a")
    journal.wait_for("a")


def cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def lose_replies(proxy: RedisProxy) -> None:
    numbers = itertools.count(1)
    proxy.lose_reply(lambda command: b"EVALSHA" in command and next(numbers) % 7 == 0, times=None)


def lose_requests(proxy: RedisProxy) -> None:
    numbers = itertools.count(1)
    proxy.lose_request(lambda command: b"EVALSHA" in command and next(numbers) % 7 == 0, times=None)


def delay(proxy: RedisProxy) -> None:
    proxy.delay_reply(0.05)


@pytest.mark.parametrize("network", [lose_replies, lose_requests, delay])
def test_a_bad_network_costs_no_job_and_doubles_none(
    start_worker, journal, server, make_proxy, network
):
    """CE-1, RQ-2"""
    proxy = make_proxy(server.url)
    push_load(400)
    worker = start_worker("-c", "4", conf=CONF, url=proxy.url)
    worker.wait_for_line("works as")
    network(proxy)
    journal.wait_for_lines(300, timeout=40)
    proxy.clear()
    check_all_ran_once(journal, server, worker, 400)
    away, back = told(worker)
    assert away == back
    assert worker.stop() == 0


def test_cut_and_half_open_connections_are_replaced(start_worker, journal, server, make_proxy):
    """CE-1"""
    proxy = make_proxy(server.url)
    push_load(400)
    worker = start_worker("-c", "4", conf=CONF, url=proxy.url)
    for at in (50, 100, 150):
        journal.wait_for_lines(at)
        proxy.cut()
    journal.wait_for_lines(200)
    proxy.freeze()
    worker.wait_for_line(r"is away \(TimeoutError", timeout=20)
    proxy.thaw()
    check_all_ran_once(journal, server, worker, 400)
    away, back = told(worker)
    assert away == back <= 5


def test_a_stop_during_an_outage_loses_nothing(start_worker, journal, server):
    """CE-3"""
    push_load(200)
    worker = start_worker("-c", "4", conf=CONF, url=server.url)
    journal.wait_for_lines(50)
    server.kill()
    worker.wait_for_line("is away")
    worker.signal(signal.SIGTERM)
    worker.wait_for_line("Stopping")
    server.start()
    assert worker.wait(25) == 0
    board = Board(server.client())
    assert board.in_progress() == 0
    ran = journal.lines()
    assert len(set(ran)) == len(ran)
    waiting = [each["args"][0] for each in board.queue()]
    assert sorted(ran + waiting) == sorted(f"j{each}" for each in range(200))
    assert board.client.keys(KEYS.process("*")) == []


def test_a_server_that_loads_its_data_is_waited_for(start_worker, journal, server):
    """CE-1: LOADING is "not now", on connections that stay open all the time."""
    client = server.client()
    with client.pipeline() as pipe:
        for number in range(4000):
            pipe.set(f"ballast:{number}", "x")
        pipe.execute()
    worker = start_worker("-c", "2", conf=CONF, url=server.url)
    worker.wait_for_line("works as")
    client.config_set("key-load-delay", 1000)
    with ThreadPoolExecutor(1) as pool:
        loaded = pool.submit(client.execute_command, "DEBUG", "LOADAOF")
        # Also a push has to wait for it; it wakes the worker's own calls into the loading server.
        wait_until(lambda: "LOADING" in worker.output or loaded.done(), timeout=20)
        assert loaded.result(30)
    jobs.Brief.perform_async("after")
    journal.wait_for("after")
    wait_until(lambda: told(worker)[0] == told(worker)[1], message="as often back as away")
    assert "BusyLoadingError" in worker.output or "LOADING" in worker.output
    assert worker.alive
