"""Looking at queues and counters: one unusable key does not spoil the rest."""

from __future__ import annotations

import json
import platform
import sys
from importlib.util import find_spec

import django
import pytest
import redis
from django.core.management import CommandError, call_command

from django_cogworker import __version__
from django_cogworker.api import ProcessSet, Queue, Stats, all_queues
from tests.project.jobs import Append, AppendLater
from tests.redis.test_basic_mode import working
from tests.support.waiting import wait_until


@pytest.fixture
def spoilt(redis_client):
    """Two queues, of which one has a text for a list, and a counter that is no number."""
    Append.perform_async("a")
    AppendLater.perform_async("b")
    redis_client.set("cogworker:queue:low", "x")
    redis_client.set("cogworker:stats:processed", "abc")
    return redis_client


def test_counters_and_sizes_survive_a_key_of_the_wrong_type(spoilt, caplog):
    stats = Stats.now()
    assert (stats.processed, stats.enqueued, stats.queues) == (0, 1, {"default": 1, "low": 0})
    assert "unusable" in caplog.text


def test_queues_survive_it_too(spoilt, capsys):
    assert [(each.name, each.size, each.latency >= 0) for each in all_queues()] == [
        ("default", 1, True),
        ("low", 0, True),
    ]
    call_command("cogworker", "queues")
    assert "default" in capsys.readouterr().out


def test_clear_removes_what_is_of_the_wrong_type(spoilt):
    assert Queue("low").clear() == 0
    assert not spoilt.exists("cogworker:queue:low")
    assert Queue("default").size == 1


def test_clear_asks_and_says_so_where_nobody_can_answer(redis_client, monkeypatch):
    Append.perform_async("a")

    def nobody(prompt):
        raise EOFError

    monkeypatch.setattr("builtins.input", nobody)
    with pytest.raises(CommandError, match="say --yes"):
        call_command("cogworker", "clear", "default")
    assert Queue("default").size == 1


def test_the_command_shows_the_counters_and_those_of_the_features_that_are_there(redis_url, capsys):
    """Also run where a feature's folder is gone: what it would have counted is not shown then."""
    Append.perform_async("a")
    core = {"processed": 0, "failed": 0, "enqueued": 1, "scheduled": 0, "retrying": 0, "dead": 0}
    counted = {"expired": 0} if find_spec("django_cogworker.features.expiry") else {}
    call_command("cogworker", "stats", "--json")
    assert json.loads(capsys.readouterr().out) == {**core, "queues": {"default": 1}, **counted}
    call_command("cogworker", "stats")
    lines = capsys.readouterr().out.splitlines()
    assert [each.split() for each in lines] == [
        [name, str(number)] for name, number in {**core, **counted}.items()
    ]


def test_n220_a_paused_queue_pauses_no_other_and_goes_on_when_it_is_resumed(
    redis_url, settings, journal
):
    """N220"""
    settings.COGWORKER_QUEUES = ["default", "low"]
    assert Queue("low").pause()
    with working():
        AppendLater.perform_async("later")
        Append.perform_async("a")
        journal.wait_for("a")
        assert [(each.name, each.paused, each.size) for each in all_queues()] == [
            ("default", False, 0),
            ("low", True, 1),
        ]
        assert Queue("low").resume()
        journal.wait_for("later")
    assert not Queue("low").paused


def test_n221_a_worker_is_listed_with_what_it_runs_until_it_stops(redis_url, capsys):
    """N221"""
    with working() as launcher:
        (process,) = wait_until(lambda: list(ProcessSet()))
        assert (process.identity, process.busy, process.is_quiet) == (launcher.identity, 0, False)
        call_command("cogworker", "workers", "--json")
        (told,) = json.loads(capsys.readouterr().out)
        versions = platform.python_version(), django.get_version(), redis.__version__, __version__
        assert (told["python"], told["django"], told["redis_py"], told["version"]) == versions
        assert told["gil"] is getattr(sys, "_is_gil_enabled", lambda: True)()
    assert list(ProcessSet()) == []
