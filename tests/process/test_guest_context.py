"""Context and log records, in real workers: what a job finds, what it leaves, and what its log lines say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.utils import timezone, translation

from tests.guests.context import request_id
from tests.guests.jobs import Dies, SaysByDjango, Surrounded, SurroundedAsync
from tests.process.coroutines import CONF, start
from tests.project.jobs import Append

CONTEXT = {"request": "tests.guests.context.request_id"}


@pytest.fixture(autouse=True)
def listed(settings):
    settings.COGWORKER_CONTEXT = CONTEXT


def enqueue(job: Any, *args: Any) -> str:
    token = request_id.set("r1")
    try:
        with translation.override("de"), timezone.override("Europe/Paris"):
            return str(job.perform_async(*args))
    finally:
        request_id.reset(token)


def test_a_job_and_its_retries_have_it_and_the_next_on_that_thread_has_nothing(
    start_worker, journal, board
):
    """The first job leaves language, zone and variable changed."""
    worker = start(start_worker, "-c", "1", COGWORKER_CONTEXT=CONTEXT)
    Surrounded.perform_async("before")
    enqueue(Surrounded, "with", 2)
    journal.wait_for("with 3: de Europe/Paris r1")
    Surrounded.perform_async("after")
    lines = journal.wait_for("after 1: en-us UTC None")
    board.wait_until_settled()
    assert lines == [
        "before 1: en-us UTC None",
        "with 1: de Europe/Paris r1",
        "with 2: de Europe/Paris r1",
        "with 3: de Europe/Paris r1",
        "after 1: en-us UTC None",
    ]
    assert worker.stop() == 0


def test_a_coroutine_has_it_too_also_in_the_threads_that_it_uses(start_worker, journal, board):
    worker = start(start_worker, COGWORKER_CONTEXT=CONTEXT)
    enqueue(SurroundedAsync, "with")
    journal.wait_for("with in a thread: de Europe/Paris left behind")
    SurroundedAsync.perform_async("after")
    journal.wait_for("after 1: en-us UTC None")
    assert "with 1: de Europe/Paris r1" in journal.lines()
    board.wait_until_settled()
    assert worker.stop() == 0


def test_a_recovered_job_has_it(start_worker, journal, board):
    """The first worker is killed while it runs the job."""
    first = start(start_worker, COGWORKER_CONTEXT=CONTEXT)
    enqueue(Dies, "k")
    first.wait()
    assert journal.lines() == ["k: de Europe/Paris r1"]
    start(start_worker, COGWORKER_CONTEXT=CONTEXT)
    journal.wait_for("k: de Europe/Paris r1", times=2)
    board.wait_until_settled()


def own(worker: Any, name: str) -> dict[str, Any]:
    """The line of JSON that the project's own logger wrote in that job."""
    found = [each for each in worker.lines if f"{name} was here" in each]
    (entry,) = map(json.loads, found)
    return dict(entry)


@pytest.mark.parametrize("logging", ["of the project", "none"])
def test_every_line_is_a_json_object_that_says_which_job_it_belongs_to(
    start_worker, journal, board, logging
):
    """Whether the project configured its log or not; also of a coroutine, and with a traceback."""
    more: dict[str, Any] = {} if logging == "of the project" else {"LOGGING": {"version": 1}}
    worker = start_worker("-c", "2", "--log-format", "json", conf={**CONF, **more})
    jid = Surrounded.set(retry=False).perform_async("a", 1)
    on_loop = SurroundedAsync.perform_async("b")
    Append.perform_async("c")
    journal.wait_for_lines(4, timeout=60)
    board.dead(jid)
    board.wait_until_settled()
    assert worker.stop() == 0
    entries = [json.loads(each) for each in worker.lines]
    assert all({"time", "level", "logger", "message"} <= set(each) for each in entries)
    (failed,) = [each for each in entries if "failed for good" in each["message"]]
    assert (failed["jid"], failed["job_class"], failed["queue"], failed["attempt"]) == (
        jid,
        Surrounded.job_name,
        "default",
        1,
    )
    assert "ValueError: a" in failed["exception"]
    (finished,) = [
        each for each in entries if each.get("jid") == on_loop and "finished" in each["message"]
    ]
    assert (finished["queue"], finished["attempt"]) == ("hooks", 1)
    if logging == "of the project":  # the root logger of the others lets no such record pass
        for name, job, queue, job_jid in (
            ("a", Surrounded, "default", jid),
            ("b", SurroundedAsync, "hooks", on_loop),
        ):
            entry = own(worker, name)
            assert (entry["jid"], entry["job_class"], entry["queue"], entry["attempt"]) == (
                job_jid,
                job.job_name,
                queue,
                1,
            )


def test_what_django_itself_logs_is_there_once(start_worker, board):
    """While `DEBUG` is on its loggers have a handler of their own for the console."""
    conf = {**CONF, "LOGGING": {"version": 1, "disable_existing_loggers": False}, "DEBUG": True}
    worker = start_worker("--noreload", "--log-format", "json", conf=conf)
    jid = SaysByDjango.perform_async()
    worker.wait_for_line(f"{jid}.*finished")
    assert worker.stop() == 0
    found = [json.loads(each) for each in worker.lines if "said by Django" in each]
    assert [(each["logger"], each["jid"]) for each in found] == [("django.of.tests", jid)]
