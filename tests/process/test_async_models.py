"""CE-16: coroutines of the loop and the database, whose one connection they share. In real workers."""

from __future__ import annotations

from typing import Any

from tests.asyncjobs import jobs, tasks
from tests.process.coroutines import start
from tests.support.waiting import wait_until
from tests.support.worker import WorkerProcess


def serve(start_worker: Any, database: dict[str, str], **conf: Any) -> WorkerProcess:
    """A worker that asks the test's database."""
    return start(start_worker, env=database, **conf)


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
