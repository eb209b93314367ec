"""Nothing on the pages is unmarked: all of them are asked for in a language of marks (`pseudo.py`)."""

from __future__ import annotations

import json
import time

import pytest
from django.contrib.admin import site
from django.urls import reverse

from django_cogworker import api
from django_cogworker.admin.registration import pages_on
from django_cogworker.admin.waiting.deeds import JobDeed
from tests.admin import pseudo
from tests.admin.conftest import ADDRESSES, CLASS, ITEMS, WORKER, add_failed, add_worker, at
from tests.admin.test_jobs import hold
from tests.support.needs import need

pytestmark = pytest.mark.django_db

#: Words that are data: names that the tests give, and proper names.
DATA = {
    *("default", "low", "red", "nightly", "hourly", "root", "admin", "other", "x", "b", "nobody"),
    *("Append", "AppendLater", CLASS, "tests.project.jobs.AppendLater", "OSError", "refused"),
    *("shop.fetch", "in-schedule", "in-retry", "in-dead", "run-good", "run-bad", "job-here"),
    *("over", "more", "b>refused</b", "Europe/Paris", "signal", "unparseable", "host1", "a"),
    "UnparseablePayload",
    *("slot-job", "held", "failing", "Redis", "Valkey", "Python", "Django", "redis-py", "UTC"),
}


@pytest.fixture(scope="module")
def locales(tmp_path_factory):
    need("msgfmt")
    return pseudo.make(tmp_path_factory.mktemp("pseudo"))


@pytest.fixture
def in_marks(settings, locales):
    settings.LOCALE_PATHS = [str(locales)]
    settings.LANGUAGES = [("xx", "Marks"), ("en", "English")]
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]


@pytest.fixture
def look(in_marks, admin):
    """Asks for a page and returns its words outside the marks that are no data."""

    def ask(address, given=None, status=200):
        header = {"Accept-Language": "xx"}
        if given is None:
            answer = admin.get(address, headers=header)
        else:
            answer = admin.post(address, given, headers=header, follow=True)
        assert answer.status_code == status, (address, given)
        text = answer.content.decode()
        assert text.count("⟦") > 20 or "_live" in address
        return sorted({each for each in pseudo.words(text) if each not in DATA})

    return ask


def fill(client):
    """What `busy` has not: odd jobs, states and workers."""
    now = time.time()
    hold(client, "held")
    add_worker(client, "host1:9:quiet", quiet=True)
    add_failed(client, "failing", priority=3, orphanings=2)
    client.zadd("cogworker:dead", {b"no job": now})
    api.Queue("low").pause()
    client.hset("cogworker:status:over", mapping={"state": "complete", "class": CLASS})
    for at_, reason in ((90, "the entry was disabled"), (150, "the run before it had not ended")):
        line = {"slot": int(now) - at_, "at": now, "skipped": reason, "count": 3, "first": 1}
        client.rpush("cogworker:periodic:ledger:nightly", json.dumps(line))


@pytest.mark.parametrize(("page", "item"), ADDRESSES)
def test_every_page_is_marked(busy, look, page, item):
    fill(busy)
    assert look(at(page, item)) == []
    assert look(at(page, item, "?_live=1")) == []


@pytest.mark.parametrize(("page", "item"), ADDRESSES)
def test_every_page_with_nothing_to_show_is_marked(redis_client, periodic, look, page, item):
    unknown = bool(item) and page in ("job", "error")
    assert look(at(page, item), status=404 if unknown else 200) == []


@pytest.mark.parametrize(("page", "item"), ADDRESSES)
def test_every_page_without_redis_is_marked(settings, periodic, look, page, item):
    settings.COGWORKER_REDIS = "redis://127.0.0.1:1/0"
    said = {"Error", "connecting", "to", "Connection", "redis", "Errno"}  # redis-py's own
    assert set(look(at(page, item), status=503)) <= said


@pytest.mark.parametrize(
    ("page", "item", "query"),
    [
        ("job", "", "?state=dead"),
        ("job", "", "?anything=OSError&error_group=x"),
        ("job", "", "?anything=nobody"),
        ("job", "held", ""),
        ("job", "in-schedule", ""),
        ("job", "in-dead", ""),
        ("job", "failing", ""),
        ("job", "over", ""),
        ("job", "run-bad", ""),
        ("queue", "", "?q=nobody"),
        ("queue", "low", "?q=nobody"),
        ("retry", "", "?q=nobody"),
        ("retry", "", "?error_group=x"),
        ("dead", "", "?q=OSError"),
        ("periodic", "", "?q=nobody"),
        ("worker", "host1:9:quiet", ""),
        ("history", "", "?q=nobody"),
        ("history", "", "?status=failed&order=longest&q=OSError"),
        ("history", "", "?order=longest"),
        ("history", "", "?jid=run-bad"),
        ("jobclass", "", "?q=nobody"),
        ("overview", "", "?period=7"),
    ],
)
def test_every_view_of_a_page_is_marked(busy, look, page, item, query):
    fill(busy)
    assert look(at(page, item, query)) == []


def test_the_index_of_the_admin_is_marked(busy, look):
    assert look(reverse("admin:app_list", args=["django_cogworker"])) == []


def _actions():
    """Of all pages that are there, so that a new one is among them."""
    for page in pages_on(site):
        for action in page.actions:
            yield pytest.param(page, action, id=f"{page.name}-{action.name}")


@pytest.mark.parametrize(("page", "action"), list(_actions()))
def test_every_action_is_marked_its_question_and_what_became_of_it(busy, look, page, action):
    fill(busy)
    given = {"action": action.name, "back": page.url(), "minutes": "5"}
    if page.name == "queue":
        given["of"] = "default"
    given["to"] = "other"
    if isinstance(action, JobDeed):
        shelf = page.shelf("default")
        first = next(each for each in shelf.page(limit=10).entries if not each.unparseable)
        given["item"] = first.handle
    else:
        given["item"] = {"job": "failing", "overview": "default"}.get(
            page.name, ITEMS.get(page.name, "")
        )
    act = page.url("act")
    assert look(act, given) == []
    assert look(act, {**given, "confirmed": "1"}) == []
    if not isinstance(action, JobDeed):
        assert look(act, {**given, "confirmed": "1", "item": "nobody"}) == []
    else:
        assert look(act, {**given, "scope": "all"}) == []
        assert look(act, {**given, "scope": "all", "filter": "class=Append&q=x"}) == []
        assert look(act, {**given, "scope": "all", "confirmed": "1"}) == []
    for odd in ({"minutes": "x", "to": ""}, {"to": "a b", "minutes": "x"}):
        assert look(act, {**given, **odd, "confirmed": "1"}) == []


def test_every_worker_is_addressed_in_marks(busy, look):
    for name in ("quiet", "resume", "stop"):
        for item in ("*", WORKER):
            assert look(at("worker") + "act/", {"action": name, "item": item}) == []


def test_a_step_that_cannot_go_on_says_so_in_marks(busy, look):
    assert look(at("dead") + "step/", {"state": "made up"}) == []
