"""The history in Redis: pages, counters of days, times of classes, what they cost and their bounds."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from django_cogworker.api import History, class_stats, percentiles, throughput
from django_cogworker.features.base import Run
from django_cogworker.features.history import names
from django_cogworker.features.history.feature import HistoryFeature
from django_cogworker.features.history.writing import noted
from django_cogworker.payload.failure import read_attempt
from django_cogworker.store.store import get_store
from django_cogworker.store.values import ExchangeRequest, Outgoing
from django_cogworker.worker.settlement import attempt_effects
from tests.project.jobs import Append, AppendLater, FailOnce, FailTimes
from tests.redis.test_basic_mode import working
from tests.support.waiting import wait_until

ME = "host:1:aaaaaaaaaaaa"


def run(
    name: str,
    *,
    at: float,
    fails: bool = False,
    job: Any = Append,
    took: float = 0.1,
    wait: float = 0,
) -> Run:
    """A run that ended at `at`."""
    payload = {
        "class": job.job_name,
        "queue": "default",
        "jid": name,
        "args": [name],
        "enqueued_at": at - took - wait,
    }
    if fails:
        return Run(payload, "dead", at - took, took, error=ValueError(f"{name} fails"))
    return Run(payload, "finished", at - took, took)


def keep(*runs: Run) -> None:
    """As a worker does: the successes by one digest, the failures one by one."""
    feature = HistoryFeature()
    good = [noted(each) for each in runs if each.error is None]
    if good:
        get_store().apply(feature.digest(good))
    for each in runs:
        if each.error is not None:
            get_store().apply(feature.settled(each))


def jids(**question: Any) -> list[str]:
    return [each.jid for each in History().page(**question).entries]


# -- a worker writes


def test_n212_n213_a_success_and_a_failure_each_have_their_record(redis_url, journal, settings):
    """N212, N213: 1, 1 and 2; arguments and times; the error with its traceback of one, which is dead all the same."""
    begun = time.time()
    settings.COGWORKER_CONCURRENCY = 2
    with working():
        Append.perform_async("good")
        bad = FailOnce.perform_async("bad")
        wait_until(lambda: History().sizes()["all"] == 2)
    assert History().sizes() == {"all": 2, "success": 1, "failed": 1}
    (good,) = History().page(status="success").entries
    (failed,) = History().page(status="failed").entries
    assert (good.args, good.attempt, good.job_class) == (["good"], 1, Append.job_name)
    assert good.started_at is not None
    assert begun <= good.started_at <= good.finished_at <= time.time() + 0.1
    assert (good.error_class, good.traceback, good.outcome) == (None, None, None)
    assert (failed.jid, failed.args, failed.outcome) == (bad, ["bad"], "dead")
    assert (failed.error_class, failed.error_message) == ("ValueError", "bad fails")
    assert failed.traceback is not None
    assert "tests/project/jobs.py" in failed.traceback
    client: Any = get_store().client
    assert client.zcard(get_store().keys.dead) == 1


def test_every_attempt_is_one_record(redis_url, journal, settings):
    settings.COGWORKER_CONCURRENCY = 2
    with working():
        FailTimes.perform_async("again", 2)
        wait_until(lambda: History().sizes() == {"all": 3, "success": 1, "failed": 2})
    page = History().page()
    assert [(each.attempt, each.status, each.outcome) for each in page.entries] == [
        (3, "success", None),
        (2, "failed", "retrying"),
        (1, "failed", "retrying"),
    ]
    stats = percentiles(FailTimes)
    assert (stats.runs, stats.failures) == (3, 2)
    assert (History().daily(1)[0].success, History().daily(1)[0].failed) == (1, 2)


def test_a_job_of_many_is_recorded_once_and_counted_once(store, journal, settings):
    settings.COGWORKER_CONCURRENCY = 3
    with working():
        Append.perform_bulk([(f"j{number}",) for number in range(300)])
        wait_until(lambda: History().sizes()["success"] == 300)
    found = [jid for offset in range(0, 300, 100) for jid in jids(offset=offset, limit=100)]
    assert len(set(found)) == 300
    stats = percentiles(Append)
    assert (stats.runs, stats.failures) == (300, 0)
    assert stats.seconds.p50 is not None
    assert stats.wait.p99 is not None
    assert History().daily(1)[0].success == 300


def test_a_call_that_is_repeated_counts_no_run_twice(redis_url):
    store = get_store()
    jobs = [Outgoing(each, "default", json.dumps({"jid": each}).encode()) for each in "ab"]
    store.push("lane", 1, jobs)
    store.exchange(ExchangeRequest(ME, 1, 2, ("default",), (), ()))
    now = time.time()
    notes = HistoryFeature().digest([noted(run(each, at=now)) for each in "ab"])
    for _ in range(2):
        store.exchange(ExchangeRequest(ME, 3, 0, (), (1, 2), (), notes))
    assert History().sizes()["all"] == 2
    assert percentiles(Append).runs == 2


def test_the_history_adds_no_request_of_its_own(redis_client, journal, settings):
    """A request that names a key of the history is always the one that settles jobs."""
    settings.COGWORKER_CONCURRENCY = 2
    with redis_client.monitor() as monitor:
        with working():
            Append.perform_async("good")
            FailOnce.perform_async("bad")
            # Looked at without naming its keys.
            wait_until(lambda: redis_client.get("cogworker:stats:failed") == b"1")
            wait_until(lambda: redis_client.get("cogworker:stats:processed") == b"1")
        redis_client.echo("end")
        seen = []
        while (command := monitor.next_command())["command"] != "ECHO end":
            seen.append(command)
    about = [each for each in seen if ":history:" in each["command"]]
    asked = {each["command"].split()[0] for each in about if each["client_type"] != "lua"}
    assert asked <= {"EVALSHA", "EVAL"}
    assert {"ZADD", "HINCRBY"} <= {
        each["command"].split()[0] for each in about if each["client_type"] == "lua"
    }


def test_off_writes_nothing(redis_url, journal, settings):
    settings.COGWORKER_HISTORY = False
    settings.COGWORKER_CONCURRENCY = 2
    client: Any = get_store().client
    with working():
        Append.perform_async("good")
        FailOnce.perform_async("bad")
        wait_until(lambda: client.get("cogworker:stats:failed") == b"1")
        wait_until(lambda: client.get("cogworker:stats:processed") == b"1")
    assert client.keys("cogworker:history:*") == []


# -- pages


def test_n214_pages_go_from_the_newest_on_with_the_total(redis_url):
    """N214"""
    now = time.time()
    keep(run("a", at=now - 3), run("b", at=now - 2), run("c", at=now - 1))
    assert jids(limit=2) == ["c", "b"]
    assert jids(limit=2, offset=2) == ["a"]
    assert jids(limit=2, offset=4) == []
    assert History().page(limit=2).total == 3


@pytest.mark.parametrize("step", [1, 7, 50])
def test_pages_of_both_kinds_are_in_order_wherever_they_begin(redis_url, step):
    """The two kinds are kept apart; a page is as if they were one list."""
    now = time.time()
    fails = [bool(number % 3 == 0 or 60 < number < 90) for number in range(120)]
    keep(*(run(f"j{n}", at=now - 200 + n, fails=each) for n, each in enumerate(fails)))
    wanted = [f"j{number}" for number in reversed(range(120))]
    got = [jid for offset in range(0, 130, step) for jid in jids(offset=offset, limit=step)]
    assert got == wanted
    failed = [name for name in wanted if fails[int(name[1:])]]
    assert jids(status="failed", limit=1_000) == failed
    assert jids(status="success", limit=1_000) == [each for each in wanted if each not in failed]


def test_runs_of_one_class_can_be_asked_for(redis_url):
    now = time.time()
    name = AppendLater.job_name
    keep(
        *(run(f"a{number}", at=now - 50 + number) for number in range(30)),
        *(run(f"b{n}", at=now - 20 + n, job=AppendLater, fails=n == 2) for n in range(5)),
        run(f'{{"class":"{name}","queue":', at=now),
    )
    assert jids(job_class=AppendLater) == ["b4", "b3", "b2", "b1", "b0"]
    assert jids(job_class=name, status="failed") == ["b2"]
    page = History().page(job_class=name, offset=1, limit=2)
    assert ([each.jid for each in page.entries], page.total) == (["b3", "b2"], 5)
    assert jids(job_class="no.such.Job") == []


def test_a_record_that_is_none_costs_itself_alone(redis_client, caplog):
    keep(run("a", at=time.time() - 5))
    redis_client.zadd("cogworker:history:success", {"junk": time.time(), "[1]": time.time()})
    assert jids() == ["a"]
    assert "no record of ours" in caplog.text


# -- bounds


@pytest.mark.parametrize("case", ["RQ-12", "DR-10", "DT-6"])
def test_rq12_dr10_dt6_old_and_surplus_runs_leave_with_the_next_one(redis_client, settings, case):
    """RQ-12, DR-10, DT-6: trimmed by each write, so no clean-up has to find the time for it."""
    settings.COGWORKER_HISTORY = {"days": 2, "runs": 3, "failures": 2}
    now = time.time()
    fails = case == "RQ-12"
    keep(run("old", at=now - 4 * 86_400, fails=fails))
    keep(run("kept", at=now - 86_400, fails=fails))
    assert jids() == ["kept"]
    keep(*(run(f"j{number}", at=now - 9 + number, fails=fails) for number in range(9)))
    assert jids() == (["j8", "j7"] if fails else ["j8", "j7", "j6"])


def test_successes_do_not_push_out_failures(redis_url, settings):
    settings.COGWORKER_HISTORY = {"runs": 5}
    now = time.time()
    keep(run("bad", at=now - 100, fails=True))
    keep(*(run(f"j{number}", at=now - 50 + number) for number in range(40)))
    assert History().sizes() == {"all": 6, "success": 5, "failed": 1}


def test_q212_tq3_all_keys_have_a_ttl_and_memory_a_bound(redis_client, settings):
    """Q2-12, TQ-3"""
    settings.COGWORKER_HISTORY = {"runs": 500, "failures": 100}
    now, memory = time.time(), []
    for batch in range(8):
        runs = [run(f"j{batch}-{n}", at=now - 20 + batch + n / 1000) for n in range(500)]
        keep(*runs, *(run(f"f{batch}-{n}", at=now - 20 + batch, fails=True) for n in range(100)))
        memory.append(redis_client.info("memory")["used_memory_dataset"])
    keys = redis_client.keys("cogworker:*")
    assert len(keys) in (5, 6, 7)  # the hour or the day may have changed
    assert all(redis_client.ttl(each) > 0 for each in keys)
    assert History().sizes() == {"all": 600, "success": 500, "failed": 100}
    assert memory[-1] - memory[1] < 100_000


# -- counters of days


def test_n216_days_are_counted_in_utc_and_outlive_the_runs(redis_url, settings):
    """N216"""
    settings.COGWORKER_HISTORY = {"days": 1, "runs": 1}
    today = int(time.time() // 86_400) * 86_400
    keep(run("a", at=today - 3 * 86_400 + 1), run("b", at=today - 3 * 86_400 - 1))
    keep(run("c", at=today + 0.5), run("d", at=today + 0.6), run("e", at=today + 0.7, fails=True))
    days = History().daily(4)
    assert [(each.success, each.failed) for each in days] == [(1, 0), (0, 0), (0, 0), (2, 1)]
    assert days[-1].date == time.strftime("%Y-%m-%d", time.gmtime(today))
    assert sum(each.success for each in History().daily(5)) == 4
    assert History().sizes()["all"] == 2
    assert History().clear() == 2
    assert History().sizes()["all"] == 0
    assert History().daily(1)[0].success == 2


def test_counters_stay_as_long_as_the_setting_says(redis_client, settings):
    settings.COGWORKER_HISTORY = {"counter_days": 10}
    keep(run("a", at=time.time()))
    (key,) = redis_client.keys("cogworker:history:daily:*")
    assert 9 * 86_400 < redis_client.ttl(key) <= 10 * 86_400


# -- times of classes


def test_percentiles_of_a_class_come_from_its_last_24_hours(redis_url):
    now = time.time()
    keep(run("old", at=now - 26 * 3600, took=5000))
    hours = [now - 3600 * each for each in range(24)]
    keep(*(run(f"j{n}", at=hours[n % 24], took=(n + 1) / 100, wait=n) for n in range(100)))
    keep(run("other", at=now, took=7, job=AppendLater, fails=True))
    stats = percentiles(Append)
    assert (stats.runs, stats.failures) == (100, 0)
    for told, true in zip(
        (stats.seconds.p50, stats.seconds.p95, stats.seconds.p99), (0.5, 0.95, 0.99), strict=True
    ):
        assert told == pytest.approx(true, rel=0.0906)
    assert stats.wait.p50 == pytest.approx(49, rel=0.0906)
    later = percentiles(AppendLater.job_name)
    assert (later.runs, later.failures) == (1, 1)
    assert later.seconds.p99 == pytest.approx(7, rel=0.0906)
    assert [each.job_class for each in class_stats()] == [Append.job_name, AppendLater.job_name]


def test_a_class_that_did_not_run_has_nothing_to_tell(redis_url):
    assert class_stats() == []
    stats = percentiles("no.such.Job")
    assert (stats.runs, stats.seconds.p50, stats.wait.p99) == (0, None, None)


def test_the_times_of_an_hour_have_a_fixed_size(redis_client):
    now = time.time()
    for batch in range(4):
        keep(*(run(f"{batch}-{n}", at=now, took=1.1**n / 1e4, wait=1.1**n) for n in range(250)))
    key = names.times(get_store().keys, Append.job_name, int(now // 3600))
    assert redis_client.hlen(key) < 220
    assert 24 * 3600 < redis_client.ttl(key) <= names.TIMES_TTL


# -- the attempts of one job, which the core keeps


def test_n217_of_thirty_attempts_the_newest_25_are_kept_the_oldest_first(redis_client):
    """N217"""
    store = get_store()
    for attempt in range(1, 31):
        record = {"jid": "j", "retry_count": attempt}
        store.apply(attempt_effects(store.keys, record, ValueError("oh"), "retrying", 1.0))
    kept = redis_client.lrange(store.keys.attempts("j"), 0, -1)
    assert [read_attempt(each)["attempt"] for each in kept] == list(range(6, 31))


# -- throughput


def test_n218_throughput_has_24_hours_with_zeros_the_oldest_first(redis_client):
    """N218"""
    assert [(each.processed, each.failed) for each in throughput()] == [(0, 0)] * 24
    hour = int(time.time() // 3600)
    redis_client.hset(f"cogworker:throughput:{hour}", mapping={"processed": 5, "failed": 1})
    redis_client.hset(f"cogworker:throughput:{hour - 2}", mapping={"processed": 7})
    redis_client.hset(f"cogworker:throughput:{hour - 24}", mapping={"processed": 9})
    redis_client.set(f"cogworker:throughput:{hour - 4}", "not a hash")
    points = throughput()
    assert len(points) == 24
    assert [points[-1].processed, points[-1].failed, points[-3].processed] == [5, 1, 7]
    assert sum(each.processed for each in points) == 12
    assert [each.at for each in points][0::23] == [(hour - 23) * 3600, hour * 3600]


# -- the command


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    call_command("cogworker", *words)
    return capsys.readouterr().out


def test_the_command_shows_runs_and_classes(redis_url, capsys):
    assert shown(capsys, "history") == "No run is kept.\n"
    assert shown(capsys, "classes") == "No job ended in the last 24 hours.\n"
    now = time.time()
    keep(run("good", at=now - 1, took=2), run("bad", at=now, fails=True))
    lines = shown(capsys, "history").splitlines()
    assert [line.split()[2] for line in lines[1:]] == ["failed", "success"]
    assert "ValueError" in lines[1]
    (record,) = json.loads(shown(capsys, "history", "--failed", "--json"))
    assert (record["jid"], record["error_message"]) == ("bad", "bad fails")
    assert len(json.loads(shown(capsys, "history", "--limit", "1", "--json"))) == 1
    assert json.loads(shown(capsys, "history", "--class", "x.Y", "--json")) == []
    assert Append.job_name in shown(capsys, "classes")
    (stats,) = json.loads(shown(capsys, "classes", "--json"))
    assert (stats["runs"], stats["failures"]) == (2, 1)
    with pytest.raises(CommandError, match="limit is 0; it takes a whole number from 1"):
        call_command("cogworker", "history", "--limit", "0")


def test_effects_of_many_pairs_do_what_they_say(store):
    from django_cogworker.store.values import Effect

    def done(effects: Sequence[Effect]) -> None:
        if store.reliable:
            job = Outgoing("a", "default", b'{"jid":"a"}', effects=tuple(effects))
            assert store.push("lane", 1, [job]) == [None]
        else:
            store.apply(effects)

    done(
        [
            Effect("hincrby", "sums", ("a", 1, "b", 2, "a", 3)),
            Effect("record", "runs", ("5", "x", "4", 2, "3", "old", "6", "y", "7", "z")),
        ]
    )
    client: Any = store.client
    assert client.hgetall("sums") == {b"a": b"4", b"b": b"2"}
    assert client.zrange("runs", 0, -1) == [b"y", b"z"]
