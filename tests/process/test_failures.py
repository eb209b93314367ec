"""Failing, retrying and dying, in real worker processes."""

from __future__ import annotations

import json
import time

import pytest

from django_cogworker.client import push
from tests.oddjobs import jobs
from tests.process.odd import HERE, KEYS, ODD
from tests.project.jobs import Append, FailTimes
from tests.support.waiting import wait_until

HANDLERS = [
    HERE + each
    for each in (
        "first_handler",
        "exiting_handler",
        "no_parameters",
        "callable_object",
        "last_handler",
    )
]


def test_a_job_runs_once_and_counts_once(start_worker, journal, board):
    """A1, H92"""
    worker = start_worker("-c", "2")
    Append.perform_async("a")
    journal.wait_for("a")
    board.wait_until_settled()
    assert journal.lines() == ["a"]
    assert (board.processed, board.failed) == (1, 0)
    hours = list(board.client.scan_iter("cogworker:throughput:*"))
    assert sum(int(board.client.hget(each, "processed") or 0) for each in hours) == 1
    assert worker.stop() == 0


def test_a_failure_with_retries_left_waits_for_the_next_attempt(start_worker, journal, board):
    """H89, H113"""
    start_worker("-c", "2", conf=ODD)
    before = time.time()
    jid = jobs.Fails.set(retry=3).perform_async("a", "the text")
    payload, due = board.retrying(jid)
    # count ** 4 + 15 + random of 30 * (count + 1), count being 1
    assert 15.5 < due - before < 76 + 10
    assert payload["error_class"] == "tests.oddjobs.jobs.Odd"
    assert payload["error_message"] == "the text"
    assert payload["retry_count"] == 1
    assert before - 1 < payload["failed_at"] < time.time() + 1
    failure = {"error_class", "error_message", "failed_at", "retry_count"}
    failure |= {"error_group", "error_place"}  # of the feature
    assert failure <= set(payload)
    assert set(payload) - failure == {"class", "args", "queue", "retry", "v", "jid", "created_at"}
    (attempt,) = board.attempts(jid)
    assert attempt["attempt"] == 1
    assert attempt["outcome"] == "retrying"
    assert "raise Odd(message)" in attempt["traceback"]
    assert 0 < board.client.ttl(KEYS.attempts(str(jid))) <= 30 * 86_400
    assert (board.processed, board.failed) == (0, 1)


def test_a_failure_without_retries_dies_at_once_and_has_its_hooks(start_worker, journal, board):
    """H88, I124, I125, I126, I132, I133, I134, I138"""
    worker = start_worker("-c", "1", conf={**ODD, "COGWORKER_DEATH_HANDLERS": HANDLERS})
    jid = jobs.FailsDead.perform_async("a")
    journal.wait_for("last a Odd count=1")
    assert journal.lines() == [
        "ran a 1",
        "exhausted a Odd count=1",
        "first a Odd count=1",
        "exiting a",
        "no parameters",
        "object a Odd default",
        "last a Odd count=1",
    ]
    entry = board.dead(jid)
    assert entry["args"] == ["a"]
    assert "changed" not in entry
    assert board.outcomes(jid) == ["dead"]
    assert (board.processed, board.failed) == (0, 1)
    assert board.client.zcard(KEYS.retry) == 0
    assert "exiting_handler" in worker.output
    # The only thread lives on, and each death has its hooks once.
    Append.perform_async("after")
    journal.wait_for("after")
    assert journal.count("last a Odd count=1") == 1


def test_the_job_has_left_the_worker_when_its_death_hooks_run(start_worker, journal, board):
    """I132"""
    start_worker("-c", "1", conf={**ODD, "COGWORKER_DEATH_HANDLERS": [HERE + "last_handler"]})
    for number in range(20):
        jobs.FailsDead.perform_async(f"n{number}")
    journal.wait_for("last n19 Odd count=1")
    assert board.client.zcard(KEYS.dead) == 20
    board.wait_until_settled()


def test_retries_are_used_up_one_by_one_and_then_the_job_dies(start_worker, journal, board):
    """H114, I117"""
    start_worker("-c", "2", conf=ODD)
    jid = jobs.Answers.set(retry=3).perform_async("a", "0.01")
    entry = board.dead(jid)
    assert entry["retry_count"] == 4
    assert [each for each in journal.lines() if each.startswith("asked")] == [
        "asked a 0 Odd",
        "asked a 1 Odd",
        "asked a 2 Odd",
    ]
    assert [each for each in journal.lines() if each.startswith("ran")] == [
        f"ran a {number}" for number in (1, 2, 3, 4)
    ]
    assert board.outcomes(jid) == ["retrying"] * 3 + ["dead"]
    attempts = board.attempts(jid)
    assert entry["failed_at"] == pytest.approx(attempts[0]["failed_at"], abs=0.001)
    assert attempts[3]["failed_at"] > attempts[0]["failed_at"]
    assert board.failed == 4


def test_the_retry_hook_decides(start_worker, journal, board):
    """I117, I118, I120, I121, I122, I124"""
    conf = {**ODD, "COGWORKER_DEATH_HANDLERS": [HERE + "last_handler"]}
    worker = start_worker("-c", "3", conf=conf)
    now = time.time()
    numeric = jobs.Answers.perform_async("numeric", "1000.5")
    whole = jobs.Answers.perform_async("whole", "7200")
    year = jobs.Answers.perform_async("year", str(400 * 86_400))
    default = {
        name: jobs.Answers.perform_async(name, name)
        for name in ("none", "raise", "nan", "inf", "true", "-1", "junk")
    }
    killed = jobs.Answers.perform_async("killed", "kill")
    discarded = jobs.Answers.perform_async("discarded", "discard")
    dead = jobs.AnswersDead.perform_async("dead", "5")
    few = jobs.FewParameters.perform_async("few")

    assert board.retrying(numeric)[1] - now == pytest.approx(1000.5, abs=12)
    assert board.retrying(whole)[1] - now == pytest.approx(7200, abs=12)
    assert board.retrying(year)[1] - now == pytest.approx(400 * 86_400, abs=12)
    for jid in default.values():
        assert 15 < board.retrying(jid)[1] - now < 90
    entry = board.dead(killed)
    assert entry["retry_count"] == 1
    assert "failure_outcome" not in entry
    assert board.outcomes(killed) == ["killed"]
    board.dead(dead)
    journal.wait_for("exhausted few")
    journal.wait_for("last dead Odd count=1")
    journal.wait_for("last killed Odd count=1")
    board.wait_until_settled()
    lines = journal.lines()
    assert lines.index("exhausted killed Odd count=1") < lines.index("last killed Odd count=1")
    assert not board.in_sets(discarded)
    assert board.outcomes(discarded) == ["discarded"]
    assert not any("discarded" in each for each in lines if each.startswith(("exhausted", "last")))
    assert not any(each.startswith("asked dead") for each in lines)
    assert board.dead(few)["retry_count"] == 2
    assert board.failed == 15
    board.wait_until_settled()
    output = worker.output
    for name in ("nan", "inf", "True", "-1.0", "'junk'"):
        assert f"answered {name};" in output
    assert "retry_in of tests.oddjobs.jobs.Answers failed; the default delay counts." in output
    assert "asks for a delay of more than a year" in output


def test_discard_on_ends_a_job_with_nothing_kept(start_worker, journal, board):
    conf = {**ODD, "COGWORKER_DEATH_HANDLERS": [HERE + "last_handler"]}
    start_worker("-c", "1", conf=conf)
    jid = jobs.Discards.perform_async("a")
    wait_until(lambda: board.outcomes(jid) == ["discarded"])
    board.wait_until_settled()
    assert not board.in_sets(jid)
    assert board.failed == 1
    assert journal.lines() == ["ran a 1"]


def test_whatever_a_job_raises_is_its_own_failure(start_worker, journal, board):
    """H116"""
    worker = start_worker("-c", "1", conf=ODD)
    kinds = [
        "exit",
        "interrupt",
        "generator",
        "cancelled",
        "group",
        "basegroup",
        "recursion",
        "stop",
    ]
    jids = {kind: jobs.Raises.perform_async(kind) for kind in kinds}
    for kind, jid in jids.items():
        assert board.dead(jid)["retry_count"] == 2, kind
        assert journal.count(f"ran {kind} 2") > 0
    for kind in ("exit", "cancelled", "odd"):
        board.dead(jobs.RaisesAsync.perform_async(kind))
    assert board.dead(jids["exit"])["error_class"] == "SystemExit"
    assert "one" in board.attempts(jids["group"])[0]["traceback"]
    Append.perform_async("after")
    journal.wait_for("after")
    assert "crashed" not in worker.output
    assert worker.stop() == 0


def test_an_error_whose_text_is_no_text_is_recorded_once(start_worker, journal, board):
    """H97, H98"""
    start_worker("-c", "1", conf=ODD)
    broken = jobs.Fails.perform_async("broken", "bad \udc80\ud800 text")
    unprintable = jobs.RaisesUnprintable.perform_async("unprintable")
    long = jobs.Fails.perform_async("long", "x" * 50_000)
    assert board.retrying(broken)[0]["error_message"] == "bad ?? text"
    message = board.retrying(unprintable)[0]["error_message"]
    assert "tests.oddjobs.jobs.Unprintable" in message
    assert "SystemExit" in message
    assert len(board.retrying(long)[0]["error_message"]) == 10_000
    assert sorted(journal.lines()) == ["ran broken 1", "ran long 1", "ran unprintable 1"]
    assert [board.outcomes(each) for each in (broken, unprintable, long)] == [["retrying"]] * 3


def test_what_is_no_job_is_buried_whole_and_the_thread_goes_on(start_worker, journal, board):
    """H93, H94, I130"""
    conf = {**ODD, "COGWORKER_DEATH_HANDLERS": [HERE + "last_handler"]}
    worker = start_worker("-c", "1", conf=conf)
    junk = [
        b"junk",
        b"[1, 2]",
        b"17",
        b'{"args": []}',
        b'{"class": "x", "args": []}',
        b'{"class": "x", "jid": "j", "args": 7}',
        b"\xff\x00",
        b"[" * 100_000,
        b"",
    ]
    for each in junk:
        board.push_raw(each)
    Append.perform_async("after")
    journal.wait_for("after")
    board.wait_until_settled()
    dead = board.all_dead()
    assert {each["class"] for each in dead} == {"(unparseable)"}
    assert {each["queue"] for each in dead} == {"default"}
    raw = {each["raw_payload"] for each in dead}
    assert raw == {each[:100_000].decode("utf-8", "backslashreplace") for each in junk}
    assert board.failed == len(junk)
    assert journal.lines() == ["after"]
    assert "crashed" not in worker.output


def test_a_job_that_nobody_knows_here_waits_without_using_an_attempt(start_worker, journal, board):
    """I129, H90"""
    conf = {**ODD, "COGWORKER_DEATH_HANDLERS": [HERE + "last_handler"]}
    worker = start_worker("-c", "2", conf=conf)
    day = 86_400
    unknown = push({"class": "shop.jobs.Gone", "args": ["u"], "retry": False})
    base = {"class": "tests.project.jobs.Append", "args": ["f"], "queue": "default", "retry": False}
    board.push_raw(json.dumps({**base, "jid": "format", "v": 2}).encode())
    tagged = {**base, "jid": "tag", "args": [{"$": "matrix", "v": []}]}
    board.push_raw(json.dumps(tagged).encode())
    old = {"class": "shop.jobs.Gone", "args": ["old"], "queue": "default", "retry": 25}
    board.push_raw(
        json.dumps({**old, "jid": "old", "unknown_since": time.time() - day - 1}).encode()
    )
    young = {**old, "jid": "young", "unknown_since": time.time() - day + 100, "retry": False}
    board.push_raw(json.dumps(young).encode())
    now = time.time()
    for jid in (unknown, "format", "tag", "young"):
        payload, due = board.scheduled(jid)
        assert due - now == pytest.approx(30, abs=12)
        assert "retry_count" not in payload
        assert payload["unknown_since"] > 0
    assert board.scheduled("young")[0]["unknown_since"] == pytest.approx(young["unknown_since"])
    assert board.dead("old")["error_class"].endswith("UnknownJob")
    journal.wait_for("last old UnknownJob count=1")
    assert board.failed == 1
    assert journal.lines() == ["last old UnknownJob count=1"]
    # The next deploy knows the format.
    key, raw = KEYS.schedule, board.client.zrange(KEYS.schedule, 0, -1)
    (entry,) = [each for each in raw if b'"format"' in each]
    payload = {**json.loads(entry), "v": 1}
    board.client.zrem(key, entry)
    board.client.zadd(key, {json.dumps(payload): 1})
    journal.wait_for("f")
    assert worker.stop() == 0


def test_a_job_that_names_no_queue_belongs_to_the_one_it_lay_on(start_worker, journal, board):
    """It comes back from a retry and from the wait of an unknown class, as any other job."""
    start_worker("-c", "2", "-q", "low")
    bare = {"class": "tests.project.jobs.FailTimes", "jid": "bare", "args": ["bare", 2]}
    board.push_raw(json.dumps(bare).encode(), queue="low")
    journal.wait_for("bare")
    board.push_raw(json.dumps({"class": "shop.jobs.Gone", "jid": "gone"}).encode(), queue="low")
    assert board.scheduled("gone")[0]["queue"] == "low"
    assert board.all_dead() == []


def test_a_payload_spoilt_by_a_middleware_is_interrupted_not_lost(start_worker, journal, board):
    """B17, H101, H102"""
    conf = {
        **ODD,
        "COGWORKER_SERVER_MIDDLEWARE": [HERE + "unserialisable"],
        "COGWORKER_DEATH_HANDLERS": [HERE + "last_handler"],
    }
    start_worker("-c", "2", conf=conf)
    first = jobs.Fails.perform_async("first")
    fields = {"class": HERE + "Fails", "queue": "default", "retry": True}
    often = push({**fields, "args": ["often"], "interrupted_count": 3, "retry_count": 3})
    last = push({**fields, "args": ["last"], "retry": 0})
    payload, due = board.retrying(first)
    assert due - time.time() == pytest.approx(30, abs=12)
    assert payload["interrupted_count"] == 1
    assert payload["retry_count"] == 1
    assert payload["error_class"] == HERE + "Odd"
    assert "thing" not in payload
    assert board.dead(often)["interrupted_count"] == 4
    board.dead(last)
    journal.wait_for("last often Odd count=4")
    journal.wait_for("last last Odd count=1")
    assert board.outcomes(first) == ["retrying"]
    assert sorted(each for each in journal.lines() if each.startswith("ran")) == [
        "ran first 1",
        "ran last 1",
        "ran often 4",
    ]


def test_a_middleware_that_empties_the_payload_costs_no_job_and_no_retry_count(
    start_worker, journal, board
):
    """H106, H109"""
    start_worker("-c", "1", conf={**ODD, "COGWORKER_SERVER_MIDDLEWARE": [HERE + "emptying"]})
    good = Append.perform_async("good")
    journal.wait_for("good")
    jid = jobs.Fails.perform_async("bad")
    dead = jobs.FailsDead.perform_async("dead")
    payload, _ = board.retrying(jid)
    assert payload["retry_count"] == 1
    assert payload["error_class"] == HERE + "Odd"
    board.dead(dead)
    journal.wait_for("exhausted dead Odd count=1")
    board.wait_until_settled()
    assert not board.in_sets(good)
    assert journal.lines() == ["good", "ran bad 1", "ran dead 1", "exhausted dead Odd count=1"]


def test_server_middleware_wraps_the_job_and_its_errors_are_the_jobs(start_worker, journal, board):
    """B12, B13"""
    conf = {**ODD, "COGWORKER_SERVER_MIDDLEWARE": [HERE + "noting", HERE + "noting_too"]}
    first = start_worker("-c", "1", conf=conf)
    Append.perform_async("a")
    journal.wait_for("a")
    assert journal.lines() == ["outer a", "inner a Append", "a"]
    first.stop()

    conf["COGWORKER_SERVER_MIDDLEWARE"] = [HERE + "raising"]
    second = start_worker("-c", "1", conf=conf)
    jid = Append.perform_async("b")
    assert board.retrying(jid)[0]["error_message"] == "the middleware fails"
    second.stop()

    conf["COGWORKER_SERVER_MIDDLEWARE"] = [HERE + "swallowing"]
    start_worker("-c", "1", conf=conf)
    jid = jobs.Answers.perform_async("c", "kill")
    journal.wait_for("swallowed")
    board.wait_until_settled()
    assert "asked c 0 Odd" in journal.lines()
    assert not board.in_sets(jid)


@pytest.mark.usefixtures("no_renames")
@pytest.mark.parametrize("bad", ["retry", "dead"])
def test_a_set_of_the_wrong_type_delays_only_what_belongs_there(start_worker, journal, board, bad):
    """H100, H108, E53"""
    conf = {**ODD, "COGWORKER_DEATH_HANDLERS": [HERE + "last_handler"]}
    worker = start_worker("-c", "1", conf=conf)
    key = getattr(KEYS, bad)
    board.client.set(key, "text")
    job = jobs.Fails if bad == "retry" else jobs.FailsDead
    jids = [job.perform_async(f"bad{number}") for number in range(3)]
    for number in range(3):
        journal.wait_for(f"ran bad{number} 1")
    # Their only processor is free for others, though none of the three could be settled.
    for number in range(5):
        Append.perform_async(f"good{number}")
        journal.wait_for(f"good{number}", timeout=5)
    assert board.in_progress() == 3
    worker.wait_for_line("WRONGTYPE")
    board.client.delete(key)
    for jid in jids:
        board.retrying(jid) if bad == "retry" else board.dead(jid)
    board.wait_until_settled()
    for number in range(3):
        assert journal.count(f"ran bad{number} 1") == 1
        if bad == "dead":
            journal.wait_for(f"last bad{number} Odd count=1")
            assert journal.count(f"exhausted bad{number} Odd count=1") == 1
    assert board.failed == 3
    assert board.processed == 5


def test_an_unusable_attempts_record_costs_only_itself(start_worker, journal, board):
    """H100"""
    start_worker("-c", "1", conf=ODD)
    jid = "jid-of-the-test"
    board.client.set(KEYS.attempts(jid), "text")
    push({"class": HERE + "Fails", "args": ["a"], "jid": jid})
    board.retrying(jid)
    board.wait_until_settled()
    assert journal.lines() == ["ran a 1"]


def test_death_hooks_run_although_the_reply_to_the_burial_was_lost(
    start_worker, journal, board, redis_url, make_proxy
):
    """CE-1"""
    proxy = make_proxy(redis_url)
    conf = {**ODD, "COGWORKER_DEATH_HANDLERS": [HERE + "last_handler"]}
    worker = start_worker("-c", "1", conf=conf, url=proxy.url)
    worker.wait_for_line("works as")
    lost = proxy.lose_reply(b'"d": "dead"')
    jid = jobs.FailsDead.perform_async("a")
    assert lost.wait()
    journal.wait_for("last a Odd count=1")
    board.dead(jid)
    board.wait_until_settled()
    assert board.failed == 1
    assert len(board.all_dead()) == 1
    assert journal.count("ran a 1") == 1


def test_signals_come_in_order_with_their_arguments(start_worker, journal, board):
    start_worker("-c", "1", conf=ODD, env={"COGWORKER_TEST_RECEIVERS": "note"})
    jobs.Nothing.perform_async()
    journal.wait_for("job_finished Nothing duration jid payload")
    jobs.FailsDead.perform_async("a")
    journal.wait_for("job_died FailsDead error jid payload")
    push({"class": "shop.jobs.Gone", "args": ["x"], "unknown_since": 1.0})
    journal.wait_for("job_died None error jid payload")
    assert journal.lines() == [
        "job_started Nothing jid payload",
        "job_finished Nothing duration jid payload",
        "job_started FailsDead jid payload",
        "ran a 1",
        "job_failed FailsDead error jid outcome payload",
        "exhausted a Odd count=1",
        "job_died FailsDead error jid payload",
        "job_failed None error jid outcome payload",
        "job_died None error jid payload",
    ]


@pytest.mark.parametrize("kind", ["broken", "exiting"])
def test_broken_receivers_neither_fail_a_job_nor_hinder_one(start_worker, journal, board, kind):
    start_worker("-c", "1", conf=ODD, env={"COGWORKER_TEST_RECEIVERS": kind})
    good = Append.perform_async("good")
    journal.wait_for("good")
    dead = jobs.FailsDead.perform_async("dead")
    assert board.dead(dead)["error_class"] == HERE + "Odd"
    journal.wait_for("exhausted dead Odd count=1")
    board.wait_until_settled()
    assert not board.in_sets(good)
    assert (board.processed, board.failed) == (1, 1)
    assert journal.lines() == ["good", "ran dead 1", "exhausted dead Odd count=1"]


def test_nothing_leaks_from_one_job_into_the_next(start_worker, journal, board, tmp_path):
    """Language, time zone and an open transaction."""
    database = tmp_path / "db.sqlite3"
    env = {"COGWORKER_TEST_DB": str(database)}
    migrate = start_worker("--no-input", "-v", "0", command="migrate", conf=ODD, env=env)
    assert migrate.wait(60) == 0
    worker = start_worker("-c", "1", conf=ODD, env=env)
    jobs.Leaks.perform_async("leak")
    jobs.Looks.perform_async("a")
    journal.wait_for_lines(2)
    leaked, looked = journal.lines()
    thread = leaked.split()[-1]
    assert looked == f"looked a en-us UTC atomic=False users=0 {thread}"
    assert "left a transaction open on the database 'default'" in worker.output
    board.wait_until_settled()
    assert board.processed == 2


def test_an_unusable_database_connection_is_replaced_between_jobs(
    start_worker, journal, board, tmp_path
):
    worker = start_worker(
        "-c", "1", conf=ODD, env={"COGWORKER_TEST_DB": str(tmp_path / "db.sqlite3")}
    )
    jobs.Connection.perform_async("a", spoil=True)
    jobs.Connection.perform_async("b")
    jobs.Connection.perform_async("c")
    journal.wait_for_lines(3)
    assert {each.split()[0] for each in journal.lines()} == {"a", "b", "c"}
    assert worker.stop() == 0


def test_many_failing_jobs_use_up_exactly_their_attempts(start_worker, journal, board):
    start_worker("-c", "4")
    for number in range(25):
        FailTimes.perform_async(f"j{number}", 3)
    for number in range(25):
        journal.wait_for(f"j{number}", timeout=30)
    board.wait_until_settled()
    assert (board.processed, board.failed) == (25, 75)
