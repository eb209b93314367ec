"""The verbs of `cogworker` for people who repair: act on what waits, explain a job, look at groups of errors."""

from __future__ import annotations

import json
import time

import pytest
from django.core.management import CommandError, call_command
from django.utils import translation

from django_cogworker.api import explain
from tests.project.jobs import Append
from tests.redis.waiting_jobs import (
    DEAD,
    RETRY,
    SCHEDULE,
    enqueue,
    in_set,
    put,
    queued,
)

APPEND, OTHER = "tests.project.jobs.Append", "tests.project.jobs.Echo"
GONE = "shop.Gone"


@pytest.fixture
def run(redis_client, capsys):
    """Runs a verb; what it wrote."""

    def run(*words: str) -> str:
        capsys.readouterr()
        call_command("cogworker", *words)
        return str(capsys.readouterr().out)

    return run


@pytest.fixture
def answers(monkeypatch):
    """Answers questions with `yes`, or as told; what was asked."""
    asked: list[str] = []
    given = ["yes"]

    def answer(question: str) -> str:
        asked.append(question)
        return given[-1]

    monkeypatch.setattr("builtins.input", answer)
    return asked, given


# -- acting on what waits


def test_those_that_match_are_retried_and_others_stay(run, redis_client, answers):
    put(redis_client, DEAD, "a", "b", error_class="TimeoutError")
    put(redis_client, DEAD, "c")
    told = run("retry", "dead", "--error", "timeouterror")
    assert answers[0] == ["Retry 2 jobs of dead with --error 'timeouterror'? Type yes: "]
    assert "On their queues: 2." in told
    assert f"2  {GONE}" in told
    assert sorted(queued(redis_client)) == ["a", "b"]
    assert in_set(redis_client, DEAD) == ["c"]


def test_with_all_and_yes_nobody_is_asked(run, redis_client, answers):
    put(redis_client, RETRY, "a", "b")
    progress = json.loads(run("retry", "retrying", "--all", "--yes", "--json"))
    assert (progress["done"], progress["classes"], progress["finished"]) == (2, {GONE: 2}, True)
    assert answers[0] == []
    assert sorted(queued(redis_client)) == ["a", "b"]


@pytest.mark.parametrize(
    "words",
    [
        ["--jid", "a"],
        ["--class", GONE, "--arguments", "needle"],
        ["--tag", "red"],
        ["--group", "0123abcd"],
        ["--any", "needle"],
        ["--queue", "slow"],
    ],
)
def test_each_criterion_chooses(run, redis_client, words):
    put(
        redis_client,
        DEAD,
        "a",
        args=["needle"],
        tags=["red"],
        error_group="0123abcd",
        queue="slow",
    )
    put(redis_client, DEAD, "b")
    assert "Deleted: 1." in run("delete", "dead", "--yes", *words)
    assert in_set(redis_client, DEAD) == ["b"]


def test_only_yes_is_a_yes(run, redis_client, answers, monkeypatch):
    put(redis_client, DEAD, "a")
    answers[1].append("y")
    with pytest.raises(CommandError, match="Nothing was done"):
        run("delete", "dead", "--all")
    assert answers[0] == ["Delete all 1 jobs of dead? Type yes: "]
    assert in_set(redis_client, DEAD) == ["a"]

    def nobody(question: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)
    with pytest.raises(CommandError, match="say --yes"):
        run("delete", "dead", "--all")
    assert in_set(redis_client, DEAD) == ["a"]


@pytest.mark.parametrize("words", [[], ["--all", "--jid", "a"]])
def test_nothing_is_done_where_it_is_not_clear_with_which(run, redis_client, words):
    put(redis_client, DEAD, "a")
    with pytest.raises(CommandError, match="Nothing was done"):
        run("delete", "dead", "--yes", *words)
    assert in_set(redis_client, DEAD) == ["a"]


def test_where_nothing_matches_nobody_is_asked(run, redis_client, answers):
    put(redis_client, DEAD, "a")
    assert "Deleted: 0." in run("delete", "dead", "--tag", "blue")
    assert answers[0] == []


def test_kill_buries_from_sets_and_queues(run, redis_client):
    put(redis_client, RETRY, "a")
    enqueue(redis_client, "b", queue="mail")
    assert "Buried: 1." in run("kill", "retrying", "--all", "--yes")
    assert "Buried: 1." in run("kill", "queue:mail", "--all", "--yes")
    assert sorted(in_set(redis_client, DEAD)) == ["a", "b"]


def test_move_takes_them_to_another_queue(run, redis_client):
    enqueue(redis_client, "a", "b")
    put(redis_client, SCHEDULE, "c")
    assert "Moved: 2." in run("move", "queue:default", "--to", "slow", "--all", "--yes")
    assert queued(redis_client, "slow") == ["a", "b"]
    assert "Moved: 1." in run("move", "scheduled", "--to", "slow", "--all", "--yes")
    (raw,) = redis_client.zrange(SCHEDULE, 0, -1)
    assert json.loads(raw)["queue"] == "slow"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--in", "3600"], None),
        (["--at", "2031-01-31T09:00:00+01:00"], 1927612800.0),
        (["--at", "2031-01-31T09:00"], 1927612800.0),
    ],
)
def test_reschedule_gives_another_time(run, redis_client, settings, words, expected):
    settings.TIME_ZONE = "Europe/Paris"
    put(redis_client, SCHEDULE, "a")
    now = time.time()
    assert "Rescheduled: 1." in run("reschedule", "scheduled", "--all", "--yes", *words)
    ((_, score),) = redis_client.zrange(SCHEDULE, 0, -1, withscores=True)
    assert score == (expected or pytest.approx(now + 3600, abs=20))


def test_what_is_refused_is_told_of_and_the_exit_status_says_so(run, redis_client, capsys):
    redis_client.zadd(RETRY, {b"no job": 1.0})
    put(redis_client, RETRY, "a")
    with pytest.raises(CommandError, match="1: it is no job"):
        run("retry", "retrying", "--all", "--yes")
    assert "On their queues: 1." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["retry", "queue:default", "--all"], "no place for this"),
        (["kill", "dead", "--all"], "no place for this"),
        (["reschedule", "scheduled", "--all"], "--in"),
        (["reschedule", "scheduled", "--all", "--at", "soon"], "is no time"),
        (["move", "dead", "--all"], "--to"),
        (["move", "dead", "--all", "--to", "a b"], "is no queue"),
        (["delete", "queue:a b", "--all"], "is no queue"),
    ],
)
def test_what_cannot_be_is_said(run, redis_client, answers, words, said):
    put(redis_client, DEAD, "a")
    with pytest.raises(CommandError, match=said):
        run(*words)
    assert answers[0] == []
    assert in_set(redis_client, DEAD) == ["a"]


# -- explaining


def test_explain_says_the_reasons(run):
    jid = str(Append.perform_in(500, "a"))
    told = run("explain", jid)
    assert told.startswith(f"{APPEND} {jid} scheduled\n")
    assert "  not_due: It is not due before" in told
    with translation.override(None):  # the command line is English, and writes times as ISO does
        expected = json.loads(json.dumps(explain(jid).as_dict()))
    assert json.loads(run("explain", jid, "--json")) == expected
    with pytest.raises(CommandError, match="Job nobody was not found"):
        run("explain", "nobody")


# -- groups of errors


def test_error_groups_are_listed_and_forgotten(run, redis_client):
    errors = pytest.importorskip("django_cogworker.features.errors.feature")
    from django_cogworker.features.base import Run
    from django_cogworker.store.store import get_store

    assert "No job has failed" in run("errors")
    feature = errors.Errors()
    for name, error, times in ((APPEND, ValueError("x"), 2), (OTHER, KeyError("y"), 1)):
        for number in range(times):
            failure = Run(
                {"jid": f"{number}", "class": name}, "retrying", time.time(), 0.1, None, error
            )
            get_store().apply(feature.settled(failure))
    first, second = json.loads(run("errors", "--json", "--order", "count"))
    assert (first["job_class"], first["count"], first["last_day"]) == (APPEND, 2, 2)
    assert second["error_class"] == "KeyError"
    told = run("errors", "--class", OTHER)
    assert second["id"] in told
    assert APPEND not in told
    assert "Forgotten." in run("errors-forget", first["id"])
    assert [each["id"] for each in json.loads(run("errors", "--json"))] == [second["id"]]
    with pytest.raises(CommandError, match="There is no group"):
        run("errors-forget", first["id"])
