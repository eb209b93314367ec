"""What is masked stays hidden: on every page, in errors, in what a search tells, and on the command line."""

from __future__ import annotations

import html
import json
import time
from typing import Any

import pytest
from django.core.management import call_command

from django_cogworker import Job
from django_cogworker.api import AllJobs, Criteria, DeadSet, seek
from tests.admin.conftest import CLASS, LISTS, WORKER, add_failed, add_worker, at
from tests.redis.waiting_jobs import DEAD, RETRY, SCHEDULE, enqueue, jids, put

pytestmark = pytest.mark.django_db

SECRET = "tops3cret"
ERROR = f"the bank refused {SECRET} of bob"


class Pay(Job):
    def perform(self, *, token: str) -> None: ...


@pytest.fixture
def secretive(redis_client, settings):
    """A job with a secret in each place, and one in the history, in an entry, in a stack."""
    settings.COGWORKER_PERIODIC = {
        "pay": {"job": Pay.job_name, "cron": "0 3 * * *", "kwargs": {"token": SECRET}}
    }
    hidden: dict[str, Any] = {"kwargs": {"password": SECRET, "to": "bob"}}
    failed: dict[str, Any] = {
        **hidden,
        "error_class": "BankError",
        "error_message": ERROR,
        "retry_count": 1,
    }
    put(redis_client, SCHEDULE, "later", at=time.time() + 900, **hidden)
    put(redis_client, RETRY, "again", at=time.time() + 900, **failed)
    put(redis_client, DEAD, "gone", at=time.time() - 900, **failed)
    enqueue(redis_client, "here", **hidden)
    add_worker(redis_client, WORKER)
    job = {"class": CLASS, "jid": "runs", "queue": "default", "args": [], "v": 1, **hidden}
    redis_client.hset(f"cogworker:workers:{WORKER}", "1", f"5000 default\n{json.dumps(job)}")
    redis_client.hset("cogworker:holders", WORKER, 2)
    add_failed(redis_client, "tried", **failed)
    attempt = {"attempt": 1, "failed_at": time.time(), "outcome": "retrying"}
    attempt |= {"error_class": "BankError", "error_message": ERROR}
    redis_client.rpush("cogworker:job_attempts:again", json.dumps(attempt))
    return redis_client


def pages():
    yield from ((each, "") for each in LISTS)
    yield from (("job", each) for each in ("later", "again", "gone", "here", "runs", "tried"))
    yield from (("queue", "default"), ("worker", WORKER), ("periodic", "pay"))


def test_no_page_shows_what_is_masked_nor_an_error_that_tells_it(secretive, admin):
    for page, item in pages():
        for live in ("", "?_live=1"):
            assert SECRET not in admin.get(at(page, item, live)).content.decode(), (page, item)
    for page, item in (("retry", ""), ("dead", ""), ("job", "again"), ("job", "gone")):
        text = html.unescape(admin.get(at(page, item)).content.decode())
        assert "the bank refused *** of bob" in text, (page, item)
        assert 'password="***", to="bob"' in text or 'password = "***"' in text, (page, item)
    assert 'token="***"' in html.unescape(admin.get(at("periodic", "pay")).content.decode())


@pytest.mark.parametrize("word", [SECRET, SECRET[:4], f"refused {SECRET[:1]}", f'd="{SECRET[:1]}'])
def test_a_search_does_not_tell_what_is_masked(secretive, viewer, word):
    """Letter by letter it could be found out otherwise."""
    secretive.delete("cogworker:job_attempts:again")
    for page, names in (
        ("scheduled", ("q", "args")),
        ("retry", ("q", "args", "error")),
        ("dead", ("q", "args", "error")),
        ("job", ("anything", "arguments", "error")),
        ("periodic", ("q",)),
    ):
        for name in names:
            answer = viewer.get(at(page), {name: word})
            assert list(answer.context["rows"]) == [], (page, name)
    for name in ("q", "args"):
        answer = viewer.get(at("queue", "default"), {name: word})
        assert list(answer.context["rows"]) == []


def test_what_is_shown_is_found(secretive, viewer):
    for page, query in (
        ("scheduled", {"args": 'password="***"'}),
        ("dead", {"error": "refused *** of"}),
        ("dead", {"q": "BOB"}),
        ("job", {"arguments": '"***", to="bob"'}),
        ("periodic", {"q": 'token="***"'}),
    ):
        assert viewer.get(at(page), query).context["rows"], (page, query)


def test_an_action_for_all_that_match_takes_those_that_are_shown(secretive, admin):
    def delete(words):
        given = {"action": "delete", "scope": "all", "filter": words, "confirmed": "1"}
        admin.post(at("dead") + "act/", given)
        return [each.jid for each in DeadSet()]

    assert delete(f"args={SECRET}") == ["gone"]
    assert delete("args=***") == []


def test_code_finds_the_real_values_unless_it_asks_for_masked_ones(secretive):
    assert jids(DeadSet().search(arguments=SECRET).entries) == ["gone"]
    assert jids(DeadSet().search(arguments=SECRET, masked=True).entries) == []
    assert jids(DeadSet().search(arguments="***", masked=True).entries) == ["gone"]
    assert len(AllJobs().search(error=SECRET).entries) == 3
    assert AllJobs().search(error=SECRET, masked=True).entries == []
    assert not Criteria(masked=True)
    wanted = Criteria(tag="red", masked=True)
    assert Criteria.read(wanted.as_dict()) == wanted
    assert wanted.texts() == {"tag": "red"}
    found = seek("gone").sighting
    assert found is not None
    assert found.record.kwargs["password"] == SECRET


def test_the_command_line_prints_nothing_that_is_masked(secretive, capsys):
    for words in (
        ("workers", "--json"),
        ("periodic", "--json"),
        ("find", "gone", "--json"),
        *(("explain", each, "--json") for each in ("here", "again", "gone")),
        ("history", "--json"),
        ("delete", "dead", "--arguments", SECRET, "--yes", "--json"),
    ):
        call_command("cogworker", *words)
        told = capsys.readouterr().out
        assert told
        assert SECRET not in told, words
    assert list(DeadSet()) == []
