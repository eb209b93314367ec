"""CE-16: coroutines on queues that an event loop serves: in real workers."""

from __future__ import annotations

import json
import time
from functools import partial

import pytest

from tests.asyncjobs import jobs
from tests.process.coroutines import CONF, start
from tests.process.odd import KEYS, Board
from tests.project.jobs import Append, Wait
from tests.support.project import Journal
from tests.support.waiting import wait_until
from tests.support.worker import WorkerProcess

HELPED = "tests.asyncjobs.jobs.around"


@pytest.mark.parametrize("middleware", [[], [HELPED]], ids=["bare", "with middleware"])
def test_a_thousand_jobs_that_wait_a_second_end_in_fifteen(
    start_worker, journal, board, middleware
):
    """CE-16: one worker, a hundred slots."""
    jobs.Nap.perform_bulk((f"n{number}",) for number in range(1000))
    worker = start(start_worker, COGWORKER_SERVER_MIDDLEWARE=middleware)
    worker.wait_for_line("works as")
    begun = time.monotonic()

    def done() -> bool:
        return sum(each.startswith("n") for each in journal.lines()) >= 1000

    wait_until(done, timeout=30)
    assert time.monotonic() - begun < 15
    board.wait_until_settled()
    assert board.processed == 1000
    lines = [each for each in journal.lines() if each.startswith("n")]
    assert len(set(lines)) == len(lines) == 1000
    assert worker.stop() == 0


def test_both_kinds_of_queues_are_served_each_where_it_belongs(
    start_worker, journal, board, database
):
    worker = start(start_worker, env=database)
    worker.wait_for_line(r"2 processors, queues default .*, 100 slots for async queues hooks")
    jobs.Where.perform_async("a")
    jobs.SyncWhere.perform_async("s")
    jobs.Where.set(queue="default").perform_async("d")
    lines = journal.wait_for_lines(7)
    assert "a in cogworker-loop jid=True" in lines
    assert [each for each in lines if each.startswith("s in cogworker-processor-")]
    assert [each for each in lines if each.startswith("d in ") and "cogworker-loop" not in each]
    # Receivers ask the database, which a loop would refuse: twice two of them.
    assert lines.count("signal started users=0") == lines.count("signal finished users=0") == 2
    worker.wait_for_line("SyncWhere is no coroutine, but lay on the async queue hooks")
    board.wait_until_settled()
    assert board.processed == 3
    info = json.loads(board.client.hget(KEYS.process(identity(worker)), "info"))
    assert (info["async_queues"], info["async_concurrency"]) == (["hooks"], 100)
    assert worker.stop() == 0


def identity(worker: WorkerProcess) -> str:
    return worker.wait_for_line(r"works as (\S+): ")[1]


def test_full_processors_keep_no_coroutine_waiting_and_the_other_way_round(
    start_worker, journal, board
):
    worker = start(start_worker, "--async-queues", "hooks", COGWORKER_ASYNC_CONCURRENCY=3)
    for name in ("w1", "w2", "w3"):
        Wait.perform_async(name)
    journal.wait_for("started w2")
    jobs.Nap.perform_async("n", 0)
    journal.wait_for("n", timeout=3)
    for name in ("a1", "a2", "a3", "a4"):
        jobs.Waits.perform_async(name)
    journal.wait_for("started a3")
    wait_until(lambda: board.in_progress() == 5, message="no more than runs", timeout=3)
    assert len(board.queue("hooks")) == len(board.queue()) == 1
    for name in ("w1", "w2"):
        journal.release(name)
    journal.wait_for("started w3")
    Append.perform_async("x")
    journal.wait_for("x", timeout=3)
    journal.release("a2")
    journal.wait_for("started a4", timeout=3)
    for name in ("w3", "a1", "a3", "a4"):
        journal.release(name)
    board.wait_until_settled()
    assert worker.stop() == 0


def test_a_job_that_is_no_coroutine_waits_for_a_processor_and_keeps_its_queue(
    start_worker, journal, board
):
    worker = start(start_worker)
    for name in ("w1", "w2"):
        Wait.perform_async(name)
        journal.wait_for(f"started {name}")
    jobs.SyncWaits.perform_async("s")
    jobs.Nap.perform_async("n", 0)
    journal.wait_for("n")
    # It is given back now and then, for others, and fetched again.
    before = len(journal.lines())
    worker.wait_for_line("is no coroutine")
    journal.release("w1")
    journal.wait_for("started s", timeout=5)
    assert len(journal.lines()) == before + 2
    for name in ("w2", "s"):
        journal.release(name)
    journal.wait_for("finished s")
    board.wait_until_settled()
    assert board.processed == 4
    assert worker.stop() == 0


@pytest.mark.parametrize("kind", ["value", "exit", "cancelled", "stop"])
@pytest.mark.parametrize("middleware", [[], [HELPED]], ids=["bare", "with middleware"])
def test_failures_have_their_retries_and_their_death(
    start_worker, journal, board, database, kind, middleware
):
    """Whatever a coroutine raises is that job's failure, and ends no loop."""
    worker = start(start_worker, env=database, COGWORKER_SERVER_MIDDLEWARE=middleware)
    jobs.Fails.perform_async("once", kind, 1)
    journal.wait_for("good once 2")
    jid = jobs.Fails.perform_async("ever", kind, 9)
    journal.wait_for("exhausted ever users=0")
    assert board.dead(jid)["retry_count"] == 2
    assert board.outcomes(jid) == ["retrying", "dead"]
    jobs.Where.perform_async("x")
    journal.wait_for("x in cogworker-loop jid=True")
    board.wait_until_settled()
    assert (board.processed, board.failed) == (2, 3)
    assert worker.stop() == 0


def test_middleware_is_around_the_whole_job(start_worker, journal, board):
    start(start_worker, COGWORKER_SERVER_MIDDLEWARE=[HELPED])
    jobs.Waits.perform_async("w")
    journal.wait_for("started w")
    assert journal.lines() == ["before w True", "started w"]
    journal.release("w")
    journal.wait_for("after w")
    assert journal.lines()[-2:] == ["finished w", "after w"]
    jobs.Leaks.perform_async("k")
    journal.wait_for("k by the middleware for k en-us")  # context variables travel
    jobs.Fails.perform_async("f", "value", 1)
    journal.wait_for("raised f ValueError")


def test_a_time_limit_cancels_the_coroutine(start_worker, journal, board):
    start(start_worker)
    jid = jobs.Waits.set(timeout=0.3, retry=False).perform_async("w")
    journal.wait_for("cancelled w stopping=False")
    assert board.dead(jid)["error_class"].endswith("JobTimeout")
    jobs.Nap.set(timeout=5).perform_async("n", 0)
    journal.wait_for("n")
    board.wait_until_settled()
    assert (board.processed, board.failed) == (1, 1)


def test_nothing_leaks_from_one_job_to_the_next(start_worker, journal):
    start(start_worker, COGWORKER_ASYNC_CONCURRENCY=1)
    for name in ("a", "b", "c"):
        jobs.Leaks.perform_async(name)
    journal.wait_for("c has c")
    assert [each for each in journal.lines() if " has " not in each] == [
        "a none en-us",
        "b none en-us",
        "c none en-us",
    ]


def test_a_job_that_starts_at_the_end_of_another_finds_nothing_of_it(start_worker, journal, board):
    """The second waits in the hand while receivers of the first one's end are still called: the slot passes from
    one to the other without the loop's being woken.
    """
    start(start_worker, COGWORKER_ASYNC_CONCURRENCY=1)
    jobs.LeaksAndLingers.perform_async("0")
    for number in range(5):
        journal.wait_for(f"lingers {number}")
        jobs.LeaksAndLingers.perform_async(str(number + 1))
        wait_until(lambda: board.in_progress() == 1 and not board.queue("hooks"))
        assert journal.lines()[-1] == f"lingers {number}"
        journal.release(f"end {number}")
    journal.wait_for("lingers 5")
    journal.release("end 5")
    found = [each for each in journal.lines() if not each.startswith("lingers ")]
    assert found == [
        f"{number} {what}"
        for number in range(6)
        for what in ("begins within none", "none en-us", f"has {number}")
    ]


def said(journal: Journal, beginning: str) -> bool:
    return any(each.startswith(beginning) for each in journal.lines())


def test_models_can_be_asked_and_broken_connections_are_closed(
    start_worker, journal, board, database
):
    default = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": database["COGWORKER_TEST_DB"],
        "CONN_MAX_AGE": 600,
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE"},
    }
    worker = start(start_worker, env=database, DATABASES={"default": default})
    jobs.Creates.perform_bulk((f"a{number}",) for number in range(50))
    for number in range(50):
        journal.wait_for(f"created a{number} True")
    for name, spoil in (("c1", False), ("c2", True), ("c3", False)):
        jobs.Connection.perform_async(name, spoil)
        board.wait_until_settled()
        wait_until(partial(said, journal, f"{name} "))
    assert [each for each in journal.lines() if each[:3] in ("c1 ", "c2 ", "c3 ")] == [
        "c1 1",
        "c2 1",
        "c3 2",
    ]
    assert "Traceback" not in worker.output
    assert worker.stop() == 0


@pytest.mark.parametrize("middleware", [[], [HELPED]], ids=["bare", "with middleware"])
def test_a_stop_cancels_what_runs_and_puts_it_back(start_worker, journal, board, middleware):
    worker = start(
        start_worker, COGWORKER_SHUTDOWN_TIMEOUT=0.5, COGWORKER_SERVER_MIDDLEWARE=middleware
    )
    jids = [jobs.Waits.perform_async(name) for name in ("w1", "w2", "w3")]
    jobs.EndsWhenAsked.perform_async("e")
    dead = jobs.WaitsOnce.perform_async("o")
    for name in ("w1", "w2", "w3", "e", "o"):
        journal.wait_for(f"started {name}")
    begun = time.monotonic()
    assert worker.stop() == 0
    assert time.monotonic() - begun < 5
    lines = journal.lines()
    assert "stopping e" in lines
    assert {f"cancelled {each} stopping=True" for each in ("w1", "w2", "w3", "o")} <= set(lines)
    assert [each["jid"] for each in board.queue("hooks")] == jids
    assert {each["interruptions"] for each in board.queue("hooks")} == {1}
    assert "retry_count" not in board.queue("hooks")[0]
    assert board.dead(dead)["error_class"].endswith("JobOrphanedError")
    assert "exhausted o" in lines
    assert board.in_progress() == 0
    assert board.processed == 1


def test_a_stop_waits_for_jobs_that_end_in_time(start_worker, journal, board):
    worker = start(start_worker)
    jobs.Waits.perform_async("w")
    journal.wait_for("started w")
    worker.signal(15)
    worker.wait_for_line("Waiting up to")
    journal.release("w")
    assert worker.wait() == 0
    assert "finished w" in journal.lines()
    assert board.processed == 1
    assert board.queue("hooks") == []


def test_after_a_kill_running_jobs_come_back_and_at_most_once_ones_are_buried(
    start_worker, journal, board
):
    worker = start(start_worker)
    jid = jobs.Waits.perform_async("w")
    once = jobs.WaitsOnce.perform_async("o")
    for name in ("w", "o"):
        journal.wait_for(f"started {name}")
    worker.kill()
    start(start_worker)
    journal.wait_for("started w", times=2, timeout=20)
    assert board.dead(once)["error_class"].endswith("JobOrphanedError")
    journal.release("w")
    journal.wait_for("finished w")
    board.wait_until_settled()
    assert journal.count("started o") == 1
    assert not board.in_sets(jid)


def test_a_suspect_runs_alone_in_a_processor(start_worker, journal, board):
    payload = {
        "class": jobs.Where.job_name,
        "jid": "suspect",
        "args": ["x"],
        "queue": "hooks",
        "retry": True,
        "v": 1,
        "orphanings": 2,
    }
    worker = start(start_worker)
    board.push_raw(json.dumps(payload).encode(), "hooks")
    wait_until(lambda: [each for each in journal.lines() if each.startswith("x in ")])
    worker.wait_for_line("Where suspect runs alone")
    assert "x in cogworker-loop " not in "\n".join(journal.lines())
    jobs.Where.perform_async("y")
    journal.wait_for("y in cogworker-loop jid=True")


def test_a_job_that_blocks_the_loop_shows(start_worker, journal):
    worker = start(start_worker)
    jobs.Blocks.perform_async("b")
    journal.wait_for("blocking b")
    Append.perform_async("x")
    journal.wait_for("x")  # the processors go on
    worker.wait_for_line(
        r"loop\b.*stuck|stuck.*loop\b|not turned.*loop|loop.*not turned", timeout=50
    )
    journal.release("b")
    journal.wait_for("unblocked b")
    worker.wait_for_line(r"The event loop stood still for \d+\.\d s.*Blocks")
    assert worker.stop() == 0


def test_a_burst_ends_when_both_kinds_are_done(start_worker, journal, board):
    Append.perform_async("x")
    jobs.Nap.perform_bulk((f"n{number}", 0.01) for number in range(300))
    worker = start(start_worker, "--burst")
    assert worker.wait(30) == 0
    assert board.processed == 301


def test_an_idle_worker_with_async_queues_stays_cheap(start_worker, journal, board):
    start(start_worker)
    jobs.Nap.perform_async("n", 0)
    journal.wait_for("n")
    board.wait_until_settled()

    def calls() -> int:
        stats = board.client.info("commandstats")
        return sum(
            stats.get(f"cmdstat_{each}", {}).get("calls", 0) for each in ("blpop", "evalsha")
        )

    begun, before = time.monotonic(), calls()
    wait_until(lambda: time.monotonic() - begun > 6)
    assert (calls() - before) / (time.monotonic() - begun) < 4.5


def test_lost_replies_double_and_lose_nothing(start_worker, journal, board, redis_url, make_proxy):
    proxy = make_proxy(redis_url)
    worker: WorkerProcess = start_worker("-c", "2", conf=CONF, url=proxy.url)
    worker.wait_for_line("works as")
    for number in range(5):
        proxy.lose_reply(b"EVALSHA", nth=5 * number + 3)
    for number in range(200):
        jobs.Nap.perform_async(f"n{number}", 0.05)
        Append.perform_async(f"x{number}")
    wait_until(lambda: len(journal.lines()) >= 400, timeout=30)
    board.wait_until_settled()
    assert len(set(journal.lines())) == len(journal.lines()) == 400
    assert board.processed == 400
    assert worker.stop() == 0


def test_names_of_the_command_line_count_instead_and_wrong_ones_are_refused(start_worker):
    worker = start(start_worker, "--async-queues", "a", "b", "-q", "b", "-q", "c")
    worker.wait_for_line(r"queues c \(weighted\), 100 slots for async queues a, b")
    refused = start(start_worker, "--async-queues", "a b")
    refused.wait_for_line("--async-queues: a queue's name has no spaces")
    assert refused.wait() == 1


def test_only_async_queues(start_worker, journal, board: Board):
    worker = start(start_worker, "-q", "hooks")
    worker.wait_for_line("queues none")
    jobs.Nap.perform_async("n", 0)
    jobs.SyncWhere.perform_async("s")
    wait_until(lambda: len(journal.lines()) == 2)
    board.wait_until_settled()
    assert worker.stop() == 0
