"""What other programs wrote into Redis breaks no page: bad records, keys of the wrong type, odd jids."""

from __future__ import annotations

import html
import json
import logging
import re
import time
from typing import Any

import pytest

from django_cogworker.admin.addresses import in_address, out_of_address
from django_cogworker.api import DeadSet, ProcessSet, Queue, losses, stuck_jobs
from django_cogworker.store import foreign, lenient
from tests.admin.conftest import ADDRESSES, CLASS, ITEMS, WORKER, at
from tests.redis.waiting_jobs import DEAD, SCHEDULE

pytestmark = pytest.mark.django_db

ODD = "odd:1:abcdef012345"
FACTS = {"hostname": "h", "pid": 1, "queues": ["default"], "concurrency": 1}
BAD_FACTS = [
    "not json",
    "5",
    "[]",
    "null",
    b"\xff",
    "[" * 5000,
    '{"queues":5,"async_queues":null,"concurrency":"x","rss_kb":"<b>","started_at":"x","hostname":{}}',
    '{"queues":[1,null],"concurrency":1e99,"started_at":1e300,"classes":[],"async_busy":{}}',
    '{"queues":["\\ud800"],"async_busy":"x","async_concurrency":[]}',
]


@pytest.fixture(autouse=True)
def untold(monkeypatch):
    monkeypatch.setattr(foreign, "_told", set())
    monkeypatch.setattr(lenient, "_told", set())


def all_work(client: Any, *further: tuple[str, str]) -> None:
    for page, item in (*ADDRESSES, *further):
        for live in ("", "?_live=1"):
            answer = client.get(at(page, item, live))
            assert answer.status_code == 200, (page, item, live)
            answer.content.decode()


@pytest.mark.parametrize("field", ["info", "busy", "beat"])
def test_a_worker_that_cannot_be_read_hides_no_other_one(busy, admin, caplog, field):
    values: dict[str, list[Any]] = {
        "info": BAD_FACTS,
        "busy": ["x", "9" * 30, "9" * 5000],
        "beat": ["x", "nan", "inf", "1e999"],
    }
    busy.sadd("cogworker:processes", ODD)
    for value in values[field]:
        facts = {"info": json.dumps(FACTS), "busy": "0", "quiet": "false", "beat": "5"}
        busy.hset(f"cogworker:process:{ODD}", mapping={**facts, field: value})
        all_work(admin, ("worker", ODD))
        assert {each.identity for each in ProcessSet()} == {WORKER, ODD}
    if field == "info":
        assert caplog.text.count(f"{ODD} holds") == 1


BAD_RECORDS = [
    "not json",
    "5",
    "[]",
    "null",
    b"\xff",
    '{"at":"x","pid":{},"lived":"y","how":5,"jid":5,"class":null,"timeout":"z","stack":5}',
]


def test_lost_workers_and_stuck_jobs_are_shown_without_what_is_none(busy, admin):
    good = len(losses()), len(stuck_jobs())
    assert good == (1, 1)
    for key in ("losses", "stuck:jobs"):
        busy.zadd(f"cogworker:{key}", dict.fromkeys(BAD_RECORDS, time.time()))
    all_work(admin)
    assert (len(losses()), len(stuck_jobs())) == good


def test_a_ledger_and_names_that_are_none(busy, admin):
    for line in (
        *BAD_RECORDS[:-1],
        '{"slot":"x","at":"y","jid":5,"outcome":[]}',
        '{"slot":1e99,"at":1e99,"skipped":{}}',
        '{"slot":1796000000,"at":null,"jid":["a"]}',
    ):
        busy.rpush("cogworker:periodic:ledger:nightly", line)
    busy.sadd("cogworker:periodic:disabled", b"\xff", "hourly")
    all_work(admin)
    answer = admin.get(at("periodic", "nightly"))
    assert [each["jid"] for each in answer.context["ledger"]] == ["slot-job"]
    states = {
        each.item.entry.name: each.item.disabled
        for each in admin.get(at("periodic")).context["rows"]
    }
    assert states == {"nightly": False, "hourly": True}


def test_a_field_that_is_no_ticket(busy, admin):
    job = json.dumps({"class": CLASS, "jid": "held", "queue": "default", "args": [], "v": 1})
    busy.hset("cogworker:holders", WORKER, 1)
    for field in ("9" * 5000, "²", "9" * 30):
        busy.hset(f"cogworker:workers:{WORKER}", field, f"1 default\n{job}")
    busy.hset(f"cogworker:workers:{WORKER}", "7", f"5000 default\n{job}")
    all_work(admin)
    assert [each.record.jid for each in admin.get(at("worker")).context["running"]] == ["held"]


ODD_JIDS = ["\ud800x", "..", ".", "_2E", "a\0b/<b>?#%", "//x/change/"]


@pytest.mark.parametrize("jid", ODD_JIDS)
@pytest.mark.parametrize("page", ["dead", "scheduled", "queue"])
def test_a_job_with_an_odd_jid_is_shown_has_a_page_and_can_be_deleted(
    redis_client, admin, jid, page
):
    job = {"class": CLASS, "jid": jid, "queue": "default", "args": [], "error_group": "\ud800"}
    raw = json.dumps(job)
    if page == "queue":
        redis_client.lpush("cogworker:queue:default", raw)
        redis_client.sadd("cogworker:queues", "default")
    else:
        moment = time.time() + (900 if page == "scheduled" else -900)
        redis_client.zadd(SCHEDULE if page == "scheduled" else DEAD, {raw: moment})
    item = "default" if page == "queue" else ""
    for here in (at(page, item), at("job")):
        text = admin.get(here).content.decode()
        links = re.findall(r'href="(/[^"]*/job/[^"]*/change/[^"]*)"', text)
        assert links
        answer = admin.get(html.unescape(links[0]))
        assert answer.status_code == 200
        assert answer.context["seen"] is not None
    shown = {"item": answer.context["jid"], "seen": answer.context["seen"].seen}
    gone = admin.post(at("job") + "act/", {"action": "delete", "confirmed": "1", **shown})
    assert gone.status_code == 302
    assert redis_client.zcard(DEAD) + redis_client.zcard(SCHEDULE) + Queue("default").size == 0


def test_names_go_into_addresses_and_back():
    for name in (*ODD_JIDS, "...", "_2E_2E", "_", "plain", "a.b"):
        part = in_address(name)
        assert part not in (".", "..")
        assert "/" not in part
        assert out_of_address(part) == name


WRONG = [
    "queues",
    "paused_queues",
    "processes",
    "holders",
    "losses",
    "stuck:jobs",
    "schedule",
    "retry",
    "dead",
    "queue:default",
    "history:success",
    "history:failed",
    "history:classes",
    "errors:groups",
    "periodic:disabled",
    "periodic:entries",
    "periodic:ledger:nightly",
    "cancel:asked",
    f"status:{ITEMS['job']}",
    f"job_attempts:{ITEMS['job']}",
    f"workers:{WORKER}",
    f"process:{WORKER}",
]


@pytest.mark.parametrize("key", WRONG)
@pytest.mark.parametrize("kind", ["string", "other"])
def test_a_key_of_the_wrong_type_takes_no_page_with_it(busy, admin, key, kind):
    """The rest is shown, and a page that had to read it names it."""
    name = f"cogworker:{key}"
    busy.delete(name)
    if kind == "string":
        busy.set(name, "x")
    else:
        busy.xadd(name, {"a": "b"})
    named = 0
    for page, item in ADDRESSES:
        for live in ("", "?_live=1"):
            answer = admin.get(at(page, item, live))
            told = answer.status_code == 404 and key in (f"process:{WORKER}", "errors:groups")
            assert answer.status_code == 200 or told, (page, item, live)
            named += "Shown as empty, since other programs" in answer.content.decode() and (
                name in answer.context["odd_keys"]
            )
    silent = ("cancel:asked", "queue:default", "periodic:entries", "periodic:ledger:nightly")
    assert named or key in silent


def test_what_changes_something_does_not_take_a_wrong_type_for_nothing(busy, admin, caplog):
    busy.delete("cogworker:periodic:disabled")
    busy.set("cogworker:periodic:disabled", "x")
    with caplog.at_level(logging.WARNING):
        answer = admin.post(at("periodic") + "act/", {"action": "enable", "item": "nightly"})
        assert answer.status_code == 503
        admin.get(at("periodic"))
        admin.get(at("periodic"))
    assert caplog.text.count("is of the wrong type and is shown as empty") == 1
    assert busy.get("cogworker:periodic:disabled") == b"x"
    with pytest.raises(Exception, match="WRONGTYPE"):
        busy.smembers("cogworker:periodic:disabled")


def test_a_message_names_only_what_changed(busy, admin):
    Queue("b").pause()
    answer = admin.post(at("queue") + "act/", {"action": "pause", "item": ["a", "b"]}, follow=True)
    words = [str(each) for each in answer.context["messages"]]
    assert words == ["Paused: a. Jobs that run already go on."]
    assert len(DeadSet()) == 1
