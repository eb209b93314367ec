"""Each job comes to its place, whatever is wrong with the key of another, with Redis or with a stop."""

from __future__ import annotations

import signal
import time
from typing import Any

import pytest

from django_cogworker.client import push
from django_cogworker.store.store import get_store
from tests.oddjobs import jobs
from tests.process.odd import HERE, KEYS, ODD
from tests.project.jobs import Append, AppendLater, Wait
from tests.support.waiting import wait_until

#: A stop that waits for nobody.
HASTY = {"COGWORKER_SHUTDOWN_TIMEOUT": 0.1}
QUICK_BEATS = {"COGWORKER_ORPHAN_THRESHOLD": 6}


def identity_of(worker: Any) -> str:
    found: str = worker.wait_for_line(r"works as (\S+): ")[1]
    return found


def test_h92_a_job_is_in_progress_while_it_runs_and_no_longer(start_worker, journal, board):
    """H92, E36: under the identity of its worker, with queue, time of the fetch and payload."""
    identity = identity_of(start_worker("-c", "2"))
    before = time.time()
    jid = str(Wait.perform_async("w"))
    journal.wait_for("started w")
    (held,) = get_store().recovering.held_by(identity, 10)
    assert (held.queue, jid.encode() in held.payload) == ("default", True)
    (value,) = board.client.hvals(KEYS.workers(identity))
    assert before - 2 < int(value.split()[0]) / 1000 < time.time() + 2
    journal.release("w")
    journal.wait_for("finished w")
    wait_until(lambda: not board.client.exists(KEYS.workers(identity)))


def test_e45_an_end_that_redis_never_heard_of_counts_at_the_stop(
    start_worker, journal, board, redis_url, make_proxy
):
    """E45, H96: what had ended is not put back with what still runs, and counts once."""
    proxy = make_proxy(redis_url)
    worker = start_worker("-c", "2", url=proxy.url, conf=HASTY)
    for name in ("ends", "runs"):
        Wait.perform_async(name)
        journal.wait_for(f"started {name}")
    proxy.down()
    journal.release("ends")
    journal.wait_for("finished ends")
    worker.wait_for_line("is away")
    worker.signal(signal.SIGTERM)
    worker.wait_for_line("Stopping")
    assert board.in_progress() == 2
    proxy.up()
    assert worker.wait(20) == 0
    assert [each["args"] for each in board.queue()] == [["runs"]]
    assert (board.processed, board.in_progress()) == (1, 0)
    assert not [each for each in worker.lines if " ERROR " in each]


@pytest.mark.parametrize("middleware", [[], [HERE + "unserialisable"]])
def test_e46_the_count_of_crashes_goes_with_an_end_of_its_own(
    start_worker, journal, board, middleware
):
    """E46: a retry, a death, and a failure that is interrupted begin with a clean sheet."""
    start_worker("-c", "2", conf={**ODD, "COGWORKER_SERVER_MIDDLEWARE": middleware})
    fields = {"queue": "default", "orphanings": 1}
    again = push({**fields, "class": HERE + "Fails", "args": ["again"]})
    dead = push({**fields, "class": HERE + "FailsDead", "args": ["dead"], "retry": False})
    entries = (board.retrying(again)[0], board.dead(dead))
    assert all("orphanings" not in each for each in entries)
    assert all(("interrupted_count" in each) is bool(middleware) for each in entries)


def test_a_wrong_key_of_one_job_in_a_batch_of_fifty_is_that_jobs_trouble(
    start_worker, journal, board
):
    """E52, E53: all fifty go back in one call, as the worker stops; one queue cannot take its job."""
    worker = start_worker("-c", "50", "-q", "default", "-q", "low", conf=HASTY)
    worker.wait_for_line("works as")
    names = [f"w{number}" for number in range(49)]
    Wait.perform_bulk([(each,) for each in names[:25]])
    Wait.set(queue="low").perform_async("odd")
    Wait.perform_bulk([(each,) for each in names[25:]])
    for name in (*names, "odd"):
        journal.wait_for(f"started {name}")
    queue = KEYS.queue("low").jobs
    board.client.set(queue, "text")
    worker.signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    assert sorted(each["args"][0] for each in board.queue()) == sorted(names)
    assert all(each["interruptions"] == 1 for each in board.queue())
    assert "WRONGTYPE" in worker.output
    assert f"The key {queue} was a string" in worker.output
    assert (board.in_progress(), board.client.llen(queue)) == (0, 1)
    journal.release("odd")
    start_worker("-c", "1", "-q", "low")
    journal.wait_for("finished odd")
    board.wait_until_settled()


@pytest.mark.usefixtures("no_renames")
def test_what_a_stop_left_in_progress_comes_back_when_its_process_is_gone(
    start_worker, journal, board
):
    """Nobody waits for the threshold, which is a minute here."""
    worker = start_worker("-c", "1", "-q", "low", conf=HASTY)
    Wait.set(queue="low").perform_async("w")
    journal.wait_for("started w")
    queue = KEYS.queue("low").jobs
    board.client.set(queue, "text")
    assert worker.stop() == 0
    assert "did not confirm the end of 1 jobs" in worker.output
    assert board.in_progress() == 1
    board.client.delete(queue)
    start_worker("-c", "1", "-q", "low")
    journal.wait_for("started w", times=2)
    journal.release("w")
    board.wait_until_settled()


def test_dr3_a_worker_whose_script_fails_goes_on_when_it_does_not_any_more(
    start_worker, journal, board
):
    """DR-3: an error of the very call that settles and fetches, not of one queue."""
    worker = start_worker("-c", "2")
    Wait.perform_async("w")
    journal.wait_for("started w")
    board.client.delete(KEYS.holders)
    board.client.set(KEYS.holders, "text")
    Append.perform_async("a")
    worker.wait_for_line("The exchange of jobs with Redis failed: WRONGTYPE")
    journal.release("w")
    journal.wait_for("finished w")
    board.client.delete(KEYS.holders)
    journal.wait_for("a")
    board.wait_until_settled()
    assert (board.processed, journal.count("started w")) == (2, 1)
    assert worker.output.count("The exchange of jobs with Redis failed") == 1
    assert "crashed" not in worker.output


@pytest.mark.parametrize("key", [KEYS.beats, KEYS.members, KEYS.workers("lost:1:x")])
def test_l172_due_jobs_move_though_recovery_fails(start_worker, journal, board, key):
    """L172: and so does all else."""
    board.client.hset(KEYS.holders, "lost:1:x", 7)
    board.client.set(key, "text")
    worker = start_worker("-c", "1", conf=QUICK_BEATS)
    worker.wait_for_line("works as")
    Append.perform_in(0.2, "due")
    journal.wait_for("due")
    AppendLater.set(queue="default").perform_async("now")
    journal.wait_for("now")
    assert "crashed" not in worker.output


@pytest.mark.parametrize("trouble", ["cut", "down"])
def test_rq6_a_command_is_obeyed_after_the_connections_were_lost(
    start_worker, journal, board, redis_url, make_proxy, trouble
):
    """RQ-6: it stands in Redis and comes with a beat; nothing has to be subscribed anew."""
    proxy = make_proxy(redis_url)
    worker = start_worker("-c", "1", conf=QUICK_BEATS, url=proxy.url)
    identity = identity_of(worker)
    store = get_store()
    if trouble == "down":
        proxy.down()
        worker.wait_for_line("is away")
    assert store.signal(identity, "quiet")
    proxy.up() if trouble == "down" else proxy.cut()
    process = KEYS.process(identity)
    wait_until(lambda: board.client.hget(process, "quiet") == b"true")
    proxy.cut()
    assert store.signal(identity, "stop")
    assert worker.wait(20) == 0


def test_pr5_a_start_does_not_look_through_what_waits(start_worker, board, journal):
    """PR-5: nothing that grows with the number of jobs is asked of Redis."""
    client = board.client
    for start in range(0, 50_000, 5_000):
        names = [f"x{number}" for number in range(start, start + 5_000)]
        client.lpush(KEYS.queue("others").jobs, *names)
        client.zadd(KEYS.schedule, dict.fromkeys(names, 9e9))
        client.zadd(KEYS.dead, dict.fromkeys(names, time.time()))
    client.sadd(KEYS.queues, "others")
    client.config_resetstat()
    worker = start_worker("-c", "2")
    Append.perform_async("a")
    journal.wait_for("a")
    asked = {each.removeprefix("cmdstat_") for each in client.info("commandstats")}
    assert asked & {"keys", "scan", "sscan", "hscan", "zscan", "lrem", "sort"} == set()
    assert client.info("commandstats")["cmdstat_evalsha"]["usec_per_call"] < 20_000
    assert worker.stop() == 0


@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_last_lines_of_a_log_come_out_though_jobs_are_left_behind(
    start_worker, journal, board, processes
):
    """Into a pipe, which Python buffers; a thread that does not end must not cost them."""
    conf = {**ODD, **HASTY}
    worker = start_worker(
        "-c", "1", "--processes", processes, conf=conf, env={"PYTHONUNBUFFERED": ""}
    )
    jobs.Prints.perform_async("the last line of a job")
    journal.wait_for("printed the last line of a job")
    assert worker.stop() == 0
    assert "1 jobs did not end in time and were put back" in worker.output
    assert "the last line of a job" in worker.lines
    assert len(board.queue()) == 1


@pytest.mark.usefixtures("no_renames")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("place", ["dead", "retry"])
def test_h110_a_failure_that_could_not_be_filed_outlives_its_worker(
    start_worker, journal, board, place, end
):
    """H110, H108, I136: the job has run, so it is filed by whoever comes next, and not run again."""
    conf = {**ODD, "COGWORKER_DEATH_HANDLERS": [HERE + "last_handler"]}
    worker = start_worker("-c", "1", conf=conf)
    worker.wait_for_line("works as")
    key = getattr(KEYS, place)
    board.client.set(key, "text")
    jid = (jobs.FailsDead if place == "dead" else jobs.Fails).perform_async("a")
    worker.wait_for_line("Settling a job failed")
    failed_at = time.time()
    worker.signal(end)
    assert worker.wait(20) == (0 if end is signal.SIGTERM else -9)
    board.client.delete(key)
    start_worker("-c", "1", conf=conf)
    if place == "dead":
        entry = board.dead(jid)
        journal.wait_for("last a JobFailedError count=1")
        journal.wait_for("exhausted a JobFailedError count=1")
    else:
        entry, due = board.retrying(jid)
        assert 10 < due - failed_at < 90
    assert (entry["error_class"], entry["error_message"]) == (HERE + "Odd", "oh")
    assert entry["retry_count"] == 1
    assert "orphanings" not in entry
    Append.perform_async("after")
    journal.wait_for("after")
    board.wait_until_settled()
    assert journal.count("ran a 1") == 1
    assert len(journal.lines()) == (4 if place == "dead" else 2)
    assert (board.processed, board.failed) == (1, 1)
    assert board.queue() == []


@pytest.mark.usefixtures("no_renames")
def test_each_odd_failure_ends_in_its_place_and_holds_up_nobody(start_worker, journal, board):
    """B17, H97, H98, H100, H101, H108: all at once, good jobs between, on one processor."""
    conf = {**ODD, "COGWORKER_SERVER_MIDDLEWARE": ["tests.oddjobs.spoiling.spoiling_some"]}
    start_worker("-c", "1", conf=conf).wait_for_line("works as")
    board.client.set(KEYS.dead, "text")
    board.client.set(KEYS.attempts("unlisted"), "text")
    retrying = {
        "surrogates": jobs.Fails.perform_async("surrogates", "\ud800 \udc80"),
        "unprintable": jobs.RaisesUnprintable.perform_async("unprintable"),
        "spoilt": jobs.Fails.perform_async("spoilt"),
    }
    Append.perform_async("good")
    fields = {"class": HERE + "Fails", "args": ["unlisted"], "jid": "unlisted"}
    retrying["unlisted"] = push(fields)
    dead = jobs.FailsDead.perform_async("unfiled")
    Append.perform_async("last")
    journal.wait_for("last")
    entries = {name: board.retrying(jid)[0] for name, jid in retrying.items()}
    assert entries["surrogates"]["error_message"] == "? ?"
    assert "cannot be had" in entries["unprintable"]["error_message"]
    assert [each for each in entries if "interrupted_count" in entries[each]] == ["spoilt"]
    wait_until(lambda: board.in_progress() == 1)
    board.client.delete(KEYS.dead)
    assert board.dead(dead)["error_message"] == "oh"
    board.wait_until_settled()
    assert (board.processed, board.failed) == (2, 5)
    assert len([each for each in journal.lines() if each.startswith("ran")]) == 5
