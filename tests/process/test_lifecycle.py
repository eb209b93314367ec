"""Start, quiet, stop: real workers, signalled by the system and from outside through Redis."""

from __future__ import annotations

import json
import re
import signal
import threading
import time

import pytest

from django_cogworker.store.store import get_store
from tests.oddjobs import jobs
from tests.process.odd import KEYS, ODD, Board
from tests.project.jobs import Append, Wait, WaitUntilStopping
from tests.support.redis_server import RedisServer
from tests.support.waiting import wait_until
from tests.support.worker import WorkerProcess

#: A beat a second instead of one in five.
QUICK_BEATS = {"COGWORKER_ORPHAN_THRESHOLD": 6}


def identity_of(worker: WorkerProcess) -> str:
    return worker.wait_for_line(r"works as (\S+): ")[1]


def presence(board: Board, identity: str) -> dict[bytes, bytes]:
    return dict(board.client.hgetall(KEYS.process(identity)))


def traces(board: Board, identity: str) -> list[str]:
    """Where Redis still knows the worker, besides its tombstone."""
    client = board.client
    keys = [KEYS.process(identity), KEYS.signal(identity), KEYS.workers(identity)]
    found = [each for each in keys if client.exists(each)]
    if client.sismember(KEYS.processes, identity):
        found.append("processes")
    if client.zscore(KEYS.beats, identity) is not None:
        found.append("beats")
    if client.hexists(KEYS.holders, identity):
        found.append("holders")
    return found


# -- start and beat


def test_a_beat_that_fails_is_followed_by_the_next(start_worker, board, redis_url, make_proxy):
    """J142"""
    proxy = make_proxy(redis_url)
    worker = start_worker("-c", "1", conf=QUICK_BEATS, url=proxy.url)
    identity = identity_of(worker)
    lost = proxy.lose_request(b'"concurrency"', times=1)
    wait_until(lambda: lost.hits == 1)
    before = board.client.zscore(KEYS.beats, identity)
    wait_until(lambda: board.client.zscore(KEYS.beats, identity) > before, timeout=20)
    assert worker.alive


def test_the_presence_is_there_before_the_first_fetch(
    start_worker, journal, board, redis_url, make_proxy
):
    """J144"""
    proxy = make_proxy(redis_url)
    Append.perform_async("a")
    seen: list[str] = []
    ready, enough = threading.Event(), threading.Event()

    def watch() -> None:
        with board.client.monitor() as monitor:
            ready.set()
            for command in monitor.listen():
                seen.append(command["command"])
                if enough.is_set():
                    return

    watcher = threading.Thread(target=watch)
    watcher.start()
    ready.wait()
    beats = proxy.lose_request(b'"concurrency"', times=2)
    worker = start_worker("-c", "1", url=proxy.url)
    journal.wait_for("a")
    enough.set()
    board.client.ping()
    watcher.join()
    assert beats.hits == 2
    beat = next(at for at, each in enumerate(seen) if KEYS.fleet_since in each)
    fetch = next(at for at, each in enumerate(seen) if KEYS.holders in each)
    assert beat < fetch
    assert not any("BLPOP" in each.upper() for each in seen[:beat])
    assert worker.stop() == 0
    assert len([each for each in worker.lines if "is away" in each]) == 1
    assert len([each for each in worker.lines if "is back after" in each]) == 1


def test_without_redis_nothing_starts_and_a_stop_is_honoured(start_worker, make_redis_server):
    """J145"""
    server: RedisServer = make_redis_server()
    server.stop()
    worker = start_worker("-c", "2", url=server.url)
    worker.wait_for_line("is away")
    worker.signal(signal.SIGTTIN)
    worker.wait_for_line("The stacks of all threads")
    worker.signal(signal.SIGTERM)
    assert worker.wait(15) == 0
    assert "cogworker-processor" not in worker.output
    worker.wait_for_line("Stopped before the first job")
    assert "works as" not in worker.output


def test_a_worker_started_before_its_redis_begins_when_that_comes(
    start_worker, journal, make_redis_server, settings
):
    server: RedisServer = make_redis_server(appendonly="yes", appendfsync="always")
    settings.COGWORKER_REDIS = server.url
    Append.perform_async("a")
    server.stop()
    worker = start_worker("-c", "2", url=server.url, conf=QUICK_BEATS)
    worker.wait_for_line("is away")
    worker.signal(signal.SIGTSTP)
    server.start()
    identity = identity_of(worker)
    worker.wait_for_line("Quiet from the start")
    client = server.client()
    assert client.hget(KEYS.process(identity), "quiet") == b"true"
    assert journal.lines() == []
    assert client.llen(KEYS.queue("default").jobs) == 1
    assert get_store().signal(identity, "resume")
    journal.wait_for("a")
    assert worker.stop() == 0


def test_what_a_worker_says_of_itself(start_worker, board):
    """J150, N221"""
    worker = start_worker("-c", "3", "-q", "default,2", "-q", "low")
    identity = identity_of(worker)
    fields = presence(board, identity)
    info = json.loads(fields[b"info"])
    assert fields[b"busy"] == b"0"
    assert fields[b"quiet"] == b"false"
    assert info["concurrency"] == 3
    assert info["queues"] == ["default", "default", "low"]
    assert info["pid"] == worker.pid
    assert 0 < board.client.ttl(KEYS.process(identity)) <= 60
    assert board.client.smembers(KEYS.queues) == {b"default", b"low"}
    assert board.client.zscore(KEYS.beats, identity) > time.time() - 60
    assert worker.stop() == 0
    assert traces(board, identity) == []


# -- quiet


def test_a_quiet_worker_finishes_what_runs_and_takes_nothing(start_worker, journal, board):
    """J156"""
    worker = start_worker("-c", "2", conf=QUICK_BEATS)
    identity = identity_of(worker)
    Wait.perform_async("w")
    journal.wait_for("started w")
    worker.signal(signal.SIGTSTP)
    wait_until(lambda: presence(board, identity)[b"quiet"] == b"true")
    Append.perform_async("later")
    Append.perform_at(time.time() - 1, "due")
    journal.release("w")
    journal.wait_for("finished w")
    board.wait_until_settled()
    wait_until(lambda: presence(board, identity)[b"busy"] == b"0", timeout=15)
    assert len(board.queue()) == 1
    assert board.client.zcard(KEYS.schedule) == 1
    assert journal.lines() == ["started w", "finished w"]

    assert get_store().signal(identity, "resume")
    journal.wait_for("later")
    journal.wait_for("due")
    wait_until(lambda: presence(board, identity)[b"quiet"] == b"false")
    assert worker.stop() == 0


def test_remote_commands_arrive_by_the_next_beat_and_each_once(start_worker, journal, board):
    """J140"""
    worker = start_worker("-c", "1", conf=QUICK_BEATS)
    identity = identity_of(worker)
    store = get_store()
    assert store.signal("nobody:1:x", "stop") is False
    assert store.signal(identity, "quiet")
    wait_until(lambda: presence(board, identity)[b"quiet"] == b"true")
    assert store.signal(identity, "resume")
    wait_until(lambda: presence(board, identity)[b"quiet"] == b"false")
    assert 0 < board.client.ttl(KEYS.signal(identity)) <= 3600
    store.signal(identity, "stop")
    store.signal(identity, "resume")  # a stop stays a stop
    assert worker.wait(20) == 0
    assert traces(board, identity) == []
    assert len(re.findall("Asked from outside to quiet", worker.output)) == 1


def test_of_two_workers_the_quiet_one_leaves_the_jobs_to_the_other(start_worker, journal, board):
    quiet, working = start_worker("-c", "1"), start_worker("-c", "1")
    name = identity_of(quiet)
    identity_of(working)
    quiet.signal(signal.SIGTSTP)
    wait_until(lambda: presence(board, name)[b"quiet"] == b"true")
    for number in range(20):
        Append.perform_async(f"j{number}")
        journal.wait_for(f"j{number}", timeout=5)
    assert not any("finished in" in each for each in quiet.lines)


# -- stop


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_worker_stops_at_once_and_leaves_no_trace(start_worker, board, number):
    for _ in range(3):
        worker = start_worker("-c", "2")
        identity = identity_of(worker)
        begun = time.monotonic()
        worker.signal(number)
        assert worker.wait(10) == 0
        assert time.monotonic() - begun < 5
        assert traces(board, identity) == []


def test_a_stop_waits_for_the_running_jobs(start_worker, journal, board):
    """CE-3"""
    worker = start_worker("-c", "2")
    Wait.perform_async("w")
    WaitUntilStopping.perform_async("s")
    journal.wait_for_lines(2)
    Append.perform_async("not any more")
    Append.perform_async("nor this")
    worker.signal(signal.SIGTERM)
    journal.wait_for("stopping s")
    journal.release("w")
    assert worker.wait(15) == 0
    assert journal.lines()[2:] in (
        ["stopping s", "finished w"],
        ["finished w", "stopping s"],
    )
    assert [each["args"] for each in board.queue()] == [["not any more"], ["nor this"]]
    assert board.in_progress() == 0
    assert board.processed == 2


def test_jobs_that_do_not_end_in_time_go_back_in_order_without_using_an_attempt(
    start_worker, journal, board
):
    """CE-3, H112"""
    conf = {"COGWORKER_SHUTDOWN_TIMEOUT": 0.1}
    names = ["a", "b", "c"]
    for name in names:
        Wait.set(retry=0).perform_async(name)
    Wait.set(retry=0).perform_async("d")
    Wait.set(priority=5).perform_async("p1")
    Wait.set(priority=5).perform_async("p2")
    for times in (1, 2, 3):
        worker = start_worker("-c", "5", conf=conf)
        for name in (*names, "p1", "p2"):
            journal.wait_for(f"started {name}", times=times)
        worker.signal(signal.SIGTERM)
        assert worker.wait(20) == 0
        waiting = board.queue()
        assert [each["args"][0] for each in waiting] == [*names, "d"]
        assert [each.get("interruptions") for each in waiting] == [times] * 3 + [None]
        assert not any("retry_count" in each or "error_class" in each for each in waiting)
        raw = board.client.zrange(KEYS.queue("default").priority, 0, -1)
        assert [json.loads(each)["args"][0] for each in raw] == ["p1", "p2"]
        assert board.in_progress() == 0
        told = any("longer than the time between deploys" in each for each in worker.lines)
        assert told is (times >= 3)
        assert "5 jobs did not end in time" in worker.output
    for name in (*names, "d", "p1", "p2"):
        journal.release(name)
    worker = start_worker("-c", "5")
    for name in (*names, "d", "p1", "p2"):
        journal.wait_for(f"finished {name}")
    board.wait_until_settled()
    assert (board.processed, board.failed) == (6, 0)


def test_an_at_most_once_job_that_runs_at_the_stop_is_buried(start_worker, journal, board):
    conf = {**ODD, "COGWORKER_SHUTDOWN_TIMEOUT": 0.1}
    worker = start_worker("-c", "2", conf=conf)
    identity = identity_of(worker)
    jid = jobs.OneShot.perform_async("a")
    jobs.OneShotQuick.perform_async("quick")
    journal.wait_for("started a")
    journal.wait_for("quick")
    wait_until(lambda: board.client.hlen(KEYS.workers(identity)) == 2)
    worker.signal(signal.SIGTERM)
    assert worker.wait(15) == 0
    assert board.dead(jid)["error_class"].endswith("JobOrphanedError")
    assert journal.count("exhausted a") == 1
    assert board.queue() == []
    assert traces(board, identity) == []
    assert (board.processed, board.failed) == (1, 1)


def test_at_most_once_jobs_leave_nothing_behind(start_worker, journal, board):
    worker = start_worker("-c", "2", conf=ODD)
    identity = identity_of(worker)
    for number in range(10):
        jobs.OneShotQuick.perform_async(f"q{number}")
    for number in range(10):
        journal.wait_for(f"q{number}")
    wait_until(lambda: board.client.exists(KEYS.workers(identity)) == 0)
    assert board.processed == 10
    assert worker.stop() == 0
    assert traces(board, identity) == []


def test_a_second_interrupt_stops_at_once(start_worker, journal, board):
    worker = start_worker("-c", "1")
    Wait.perform_async("w")
    journal.wait_for("started w")
    worker.signal(signal.SIGINT)
    worker.wait_for_line("Waiting up to 25 s for 1 running jobs")
    begun = time.monotonic()
    worker.signal(signal.SIGINT)
    assert worker.wait(15) == 0
    assert time.monotonic() - begun < 8
    (payload,) = board.queue()
    assert payload["interruptions"] == 1
    assert board.in_progress() == 0


def test_stacks_are_written_on_request_and_the_work_goes_on(start_worker, journal):
    worker = start_worker("-c", "1")
    Wait.perform_async("w")
    journal.wait_for("started w")
    worker.signal(signal.SIGTTIN)
    worker.wait_for_line("Thread cogworker-processor-1")
    worker.wait_for_line("journal.wait_for_file")
    worker.wait_for_line("Thread cogworker-fetcher")
    journal.release("w")
    journal.wait_for("finished w")
    assert worker.stop() == 0


def test_jobs_of_a_lost_reply_go_back_when_the_worker_stops(
    start_worker, journal, board, redis_url, make_proxy
):
    """What Redis granted and the worker never heard of is not left in progress by a stop."""
    proxy = make_proxy(redis_url)
    worker = start_worker("-c", "1", url=proxy.url)
    identity = identity_of(worker)
    Wait.perform_async("w")
    journal.wait_for("started w")
    # The end of w and the fetch of what comes next are one call, whose reply is lost.
    for number in range(3):
        Append.perform_async(f"j{number}")
    held = proxy.lose_reply(lambda command: KEYS.holders.encode() in command, times=1)
    proxy_down = threading.Thread(target=lambda: held.wait() and proxy.down())
    proxy_down.start()
    journal.release("w")
    proxy_down.join()
    worker.wait_for_line("is away")
    worker.signal(signal.SIGTERM)
    worker.wait_for_line("Stopping")
    assert board.in_progress() == 1
    proxy.up()
    assert worker.wait(20) == 0
    assert board.in_progress() == 0
    assert traces(board, identity) == []
    done = [each for each in journal.lines() if each.startswith("j")]
    left = [each["args"][0] for each in board.queue()]
    assert sorted(done + left) == ["j0", "j1", "j2"]


def test_a_stop_without_redis_ends_in_time_and_says_what_is_left(
    start_worker, journal, make_redis_server, settings
):
    server: RedisServer = make_redis_server(appendonly="yes", appendfsync="always")
    settings.COGWORKER_REDIS = server.url
    worker = start_worker("-c", "1", conf={"COGWORKER_SHUTDOWN_TIMEOUT": 0.1}, url=server.url)
    Wait.perform_async("w")
    journal.wait_for("started w")
    server.stop()
    worker.wait_for_line("is away")
    begun = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert worker.wait(25) == 0
    assert time.monotonic() - begun < 20
    assert "Redis did not confirm the end of 1 jobs" in worker.output
    server.start()
    assert server.client().hlen(KEYS.workers(identity_of(worker))) == 1


def test_a_basic_worker_puts_its_running_jobs_back_when_it_stops(start_worker, journal, board):
    """D33"""
    conf = {"COGWORKER_SHUTDOWN_TIMEOUT": 0.1}
    worker = start_worker("-c", "2", "--fetch", "basic", conf=conf)
    worker.wait_for_line("basic mode")
    for name in ("a", "b", "c"):
        Wait.perform_async(name)
    journal.wait_for("started a")
    journal.wait_for("started b")
    worker.signal(signal.SIGTERM)
    assert worker.wait(15) == 0
    assert [each["args"][0] for each in board.queue()] == ["a", "b", "c"]
