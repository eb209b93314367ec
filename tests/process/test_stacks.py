"""The stacks of running jobs, as their worker writes them down when somebody asks."""

from __future__ import annotations

import json
import time
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from django_cogworker import api
from tests.asyncjobs import jobs
from tests.followed.jobs import ForeverInPython
from tests.process.coroutines import start
from tests.project.jobs import Wait
from tests.support.waiting import wait_until
from tests.support.worker import WorkerProcess


def run(*words: str) -> str:
    out = StringIO()
    call_command("cogworker", *words, stdout=out)
    return out.getvalue()


def identity(worker: WorkerProcess) -> str:
    return worker.wait_for_line(r"works as (\S+): ")[1]


def asked(name: str) -> api.WorkerStacks:
    """What the worker answers."""
    before = api.worker_stacks(name).at
    assert api.ask_stacks(name)
    wait_until(lambda: api.worker_stacks(name).at != before, timeout=20)
    return api.worker_stacks(name)


def test_a_job_in_a_thread_is_shown_where_it_is(start_worker, journal, redis_client):
    name = identity(start_worker("-c", "2"))
    assert asked(name) == api.WorkerStacks(name, at=api.worker_stacks(name).at)
    begun = time.time()
    jid = str(ForeverInPython.perform_async("a"))
    journal.wait_for("started a")
    (process,) = api.ProcessSet()
    assert process.ask_stacks()
    wait_until(lambda: api.worker_stacks(name).jobs, timeout=20)
    found = api.worker_stacks(name)
    assert (found.asked, found.more) == (False, 0)
    (job,) = found.jobs
    assert (job.jid, job.queue) == (jid, "default")
    assert job.job_class == "tests.followed.jobs.ForeverInPython"
    assert found.at is not None
    assert begun - 1 <= job.since <= found.at <= time.time()
    assert "tests/followed/jobs.py" in job.stack
    assert "in perform" in job.stack
    assert 0 < redis_client.ttl(f"cogworker:stacks:taken:{name}") <= 120
    assert redis_client.keys("cogworker:stacks:asked:*") == []


def test_a_coroutine_that_waits_is_shown_with_what_it_awaits(start_worker, journal):
    """On a loop beside many others, and in a processor's thread; without the frames of the loop."""
    name = identity(start(start_worker))
    wanted = {str(jobs.Waits.perform_async(each)) for each in ("a", "b")}
    wanted.add(str(jobs.Waits.set(queue="default").perform_async("c")))
    for each in "abc":
        journal.wait_for(f"started {each}")
    found = asked(name).jobs
    assert {each.jid for each in found} == wanted
    for job in found:
        lines = job.stack.splitlines()
        assert "in perform" in lines[0]
        assert "await file(name)" in lines[1]
        assert "in file" in lines[2]
        assert "run_forever" not in job.stack
    for each in "abc":
        journal.release(each)


def test_where_a_coroutine_holds_up_its_loop_the_stack_says_by_what(start_worker, journal):
    name = identity(start(start_worker))
    jobs.Waits.perform_async("a")
    journal.wait_for("started a")
    jobs.Blocks.perform_async("b")
    journal.wait_for("blocking b")
    found = asked(name).jobs
    assert len(found) == 2
    for each in found:
        assert "wait_for_file" in each.stack
        assert "run_forever" in each.stack
    journal.release("b")
    journal.release("a")


def test_a_worker_that_stops_still_tells_what_it_waits_for(start_worker, journal):
    worker = start_worker("-c", "1")
    name = identity(worker)
    Wait.perform_async("a")
    journal.wait_for("started a")
    worker.signal(15)
    worker.wait_for_line("Stopping")
    (job,) = asked(name).jobs
    assert "in perform" in job.stack
    journal.release("a")
    assert worker.wait() == 0


def test_the_command_line_asks_and_waits(start_worker, journal, redis_client):
    name = identity(start_worker("-c", "1"))
    assert "No job is running" in run("stacks", name)
    jid = str(Wait.perform_async("a"))
    journal.wait_for("started a")
    told = run("stacks", name)
    assert f"tests.project.jobs.Wait {jid}" in told
    assert "in perform" in told
    told = json.loads(run("stacks", name, "--json"))
    assert (told["identity"], told["jobs"][0]["jid"]) == (name, jid)
    with pytest.raises(CommandError, match="There is no worker 'x'"):
        run("stacks", "x")
    journal.release("a")


def test_a_worker_that_does_not_answer_is_told_of(redis_client):
    redis_client.sadd("cogworker:processes", "h:1:x")
    redis_client.hset("cogworker:process:h:1:x", mapping={"info": "{}", "busy": 0})
    with pytest.raises(CommandError, match="has not answered"):
        run("stacks", "h:1:x", "--seconds", "0.1")
