"""CE-16: coroutines of the loop and the database, whose one connection they share. In real workers."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.asyncjobs import jobs, tasks
from tests.process.coroutines import start
from tests.support.waiting import wait_until
from tests.support.worker import WorkerProcess


def serve(start_worker: Any, database: dict[str, str], **conf: Any) -> WorkerProcess:
    """A worker that asks the test's database."""
    return start(start_worker, env=database, **conf)


def rows(database: dict[str, str], beginning: str) -> list[str]:
    """User names in the database. Where anybody is within a transaction that writes, it cannot be asked."""
    path = database["COGWORKER_TEST_DB"]
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        found = db.execute(
            "SELECT username FROM auth_user WHERE username LIKE ? ORDER BY username",
            [f"{beginning}%"],
        )
        return [each for (each,) in found]


def test_many_at_once_use_the_models_and_none_sees_the_others_transactions(
    start_worker, journal, board, database
):
    worker = serve(start_worker, database)
    tasks.Mixes.perform_bulk((f"m{number:03}", number % 3 == 0) for number in range(150))
    journal.wait_for_lines(150, timeout=60)
    clean = "atomic=False autocommit=True"
    assert sorted(journal.lines()) == [
        f"m{number:03} rows={0 if number % 3 == 0 else 2} {clean}" for number in range(150)
    ]
    board.wait_until_settled()
    assert (board.processed, board.failed) == (150, 0)
    assert len(rows(database, "m")) == 150 + 2 * 100
    assert "Traceback" not in worker.output
    assert worker.stop() == 0


def test_what_one_job_rolls_back_is_its_own(start_worker, journal, board, database):
    serve(start_worker, database)
    jid = tasks.Holds.set(retry=False).perform_async("h", fails=True)
    journal.wait_for("open h")
    for number in range(5):
        tasks.Row.perform_async(f"r{number}")
        journal.wait_for(f"asks for r{number}")
    journal.release("h")
    assert board.dead(jid)["error_class"].endswith("BadPair")
    board.wait_until_settled()
    assert rows(database, "h") == []
    assert rows(database, "r") == [f"r{number}" for number in range(5)]


def test_one_that_is_cancelled_in_a_transaction_leaves_it_whole_and_nothing_open(
    start_worker, journal, board, database
):
    """By its time limit. What runs in the thread runs to its end; what had not begun never does."""
    worker = serve(start_worker, database)
    held = tasks.Holds.set(timeout=0.3, retry=False).perform_async("h")
    journal.wait_for("open h")
    waits = tasks.Row.set(timeout=0.3, retry=False).perform_async("never")
    tasks.Mixes.perform_async("next", False)
    for jid in (held, waits):
        assert board.dead(jid)["error_class"].endswith("JobTimeout")
    journal.release("h")
    journal.wait_for("next rows=2 atomic=False autocommit=True")
    board.wait_until_settled()
    assert "held h" not in journal.lines()
    assert rows(database, "h") == ["h-1", "h-2"]
    assert rows(database, "never") == []
    assert worker.stop() == 0


def test_a_stop_in_a_transaction_leaves_nothing_of_it_and_the_job_runs_again(
    start_worker, journal, board, database
):
    worker = serve(start_worker, database, COGWORKER_SHUTDOWN_TIMEOUT=0.3)
    jid = tasks.Holds.perform_async("h")
    journal.wait_for("open h")
    tasks.Row.perform_async("r")
    journal.wait_for("asks for r")
    assert worker.stop() == 0
    back, other = board.queue("hooks")
    assert (back["jid"], other["args"]) == (jid, ["r"])
    assert rows(database, "") == []
    serve(start_worker, database)
    journal.release("h")
    journal.wait_for("held h")
    board.wait_until_settled()
    assert rows(database, "") == ["h-1", "h-2", "r"]
    assert (board.processed, board.failed) == (2, 0)


@pytest.mark.parametrize("how", ["atomic", "autocommit"])
def test_a_transaction_that_a_job_leaves_open_is_rolled_back(
    start_worker, journal, board, database, how
):
    serve(start_worker, database)
    tasks.LeavesOpen.perform_async("l", how)
    wait_until(lambda: board.processed == 1)
    tasks.Mixes.perform_async("next", False)
    journal.wait_for("next rows=2 atomic=False autocommit=True")
    assert rows(database, "l") == []
    wait_until(lambda: board.processed == 2)


def test_the_end_of_one_job_does_not_close_the_connection_from_which_another_reads(
    start_worker, journal, board, database
):
    """Without `CONN_MAX_AGE` a connection is too old at once: too old for the next job, not for one that runs."""
    worker = serve(start_worker, database)
    tasks.Mixes.perform_async("a", False)
    wait_until(lambda: board.processed == 1)
    jid = tasks.Reads.set(retry=False).perform_async("r")
    journal.wait_for("reading r")
    for number in range(3):
        tasks.Row.perform_async(f"b{number}")
    wait_until(lambda: board.processed == 4)
    journal.release("r")
    wait_until(lambda: board.processed + board.failed == 5)
    assert not board.in_sets(jid), worker.output
    assert journal.lines()[-1] == "read r 3"
    # The one that `a` had, the one that the others shared, and now a third.
    jobs.Connection.perform_async("c")
    journal.wait_for("c 3")


def test_an_old_connection_is_closed_with_the_last_job_that_has_used_it(
    start_worker, journal, board, database
):
    serve(start_worker, database)
    tasks.AsksAndWaits.perform_async("w")
    journal.wait_for("asked w")
    jobs.Connection.perform_async("c")
    journal.wait_for("c 1")
    wait_until(lambda: board.processed == 1)
    journal.release("w")
    wait_until(lambda: board.processed == 2)
    jobs.Connection.perform_async("d")
    journal.wait_for("d 2")
