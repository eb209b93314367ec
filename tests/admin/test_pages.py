"""What the pages show: with data, without any, with Redis away, and to whom."""

from __future__ import annotations

import json
import re
import time
from html.parser import HTMLParser
from unittest import mock

import pytest
from django.test import Client
from django.utils import translation

from django_cogworker.api import History
from tests.admin.conftest import ADDRESSES, CLASS, ITEMS, LISTS, WORKER, add_worker, at
from tests.support.round_trips import counted

pytestmark = pytest.mark.django_db


DEFAULTS = History.ranked.__kwdefaults__ or {}


class Outline(HTMLParser):
    """What a policy against inline code and foreign addresses would refuse, and tags left open."""

    VOID = frozenset(("input", "link", "meta", "br", "img", "hr", "path", "use", "rect"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.refused: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        for name, value in attrs:
            if name == "style" or name.startswith("on"):
                self.refused.append(f"{tag} {name}")
            if name in ("src", "href", "action") and re.match(r"(https?:)?//", value or ""):
                self.refused.append(f"{tag} {value}")
        if tag == "style" or (tag == "script" and not given.get("src")):
            self.refused.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def everything(client):
    """All that Redis holds, byte by byte."""
    return {key: client.dump(key) for key in client.keys("*")}


# -- they show what there is


@pytest.mark.parametrize(("page", "item"), ADDRESSES)
def test_every_page_shows_what_there_is(busy, viewer, page, item):
    answer = viewer.get(at(page, item))
    assert answer.status_code == 200
    text = answer.content.decode()
    told = {
        "overview": [">default</a>", ">low</a>", "1 of 10 busy", "The last 24 hours", "Redis"],
        "job": ["&lt;frame 1&gt;", "attempt 1 failed", "Why is this job not running", "red"]
        if item
        else ["job-here", "retrying", "enqueued", CLASS, "&lt;i&gt;x&lt;/i&gt;"],
        "queue": ["open", WORKER] if item else [">default</a>", ">low</a>"],
        "scheduled": ["in-schedule", CLASS, "red"],
        "retry": ["in-retry", "3 of 5", "OSError", "&lt;b&gt;refused&lt;/b&gt;"],
        "dead": ["in-dead", "2 of 5", "OSError", "&lt;b&gt;refused&lt;/b&gt;"],
        "periodic": ["slot-job"] if item else ["nightly", "hourly", "0 3 * * *", "Europe/Paris"],
        "worker": ["5.1 MB", "active"] if item else [WORKER, "signal 9", "&lt;frame&gt;"],
        "history": ["run-good", "run-bad", "OSError", "1.2 s", "&lt;b&gt;refused&lt;/b&gt;"],
        "error": ["shop.fetch", "OSError", "job-here", "&lt;b&gt;refused", "dead</a>"],
        "jobclass": ["95 %", "Run time"] if item else [CLASS],
    }[page]
    assert [each for each in told if each not in text] == []
    assert "<i>x</i>" not in text


@pytest.mark.parametrize(("page", "item"), ADDRESSES)
def test_every_page_has_words_for_having_nothing_to_show(
    redis_client, periodic, viewer, page, item
):
    answer = viewer.get(at(page, item))
    unknown = bool(item) and page in ("job", "error")
    assert answer.status_code == (404 if unknown else 200)
    words = {
        "overview": "No worker lives",
        "job": "This job is not known" if item else "No job waits, runs or is dead",
        "error": "This group of errors is not known"
        if item
        else "No job has failed in the last 30 days",
        "queue": "nobody reads it" if item else "There are no queues yet",
        "scheduled": "No job waits for its time",
        "retry": "No job waits for another attempt",
        "dead": "No job is dead",
        "periodic": "No slot of this entry" if item else "No worker has published",
        "worker": "lives no more" if item else "No worker lives",
        "history": "No run is kept",
        "jobclass": "No job of this class" if item else "No job has run",
    }[page]
    assert words in answer.content.decode()


def test_there_are_words_for_no_entries_and_for_no_match(redis_client, periodic, viewer, settings):
    assert "No entry matches “x”" in viewer.get(at("periodic", query="?q=x")).content.decode()
    text = viewer.get(at("periodic", query="?q=NIGHT")).content.decode()
    assert "nightly" in text
    assert "hourly" not in text
    settings.COGWORKER_PERIODIC = {}
    assert "There are no periodic entries" in viewer.get(at("periodic")).content.decode()


@pytest.mark.parametrize(
    ("page", "item"), [("queue", "a b"), ("periodic", "none"), ("jobclass", "none")]
)
def test_a_thing_that_cannot_be_is_not_found_and_one_unknown_is_empty(
    redis_client, periodic, viewer, page, item
):
    expected = 200 if page == "jobclass" else 404
    assert viewer.get(at(page, item)).status_code == expected


def test_names_with_odd_characters_have_pages(redis_client, viewer):
    for name in ("a/b", "ü?&#", "<b>", "a%2Fb", "_2F"):
        redis_client.sadd("cogworker:queues", name)
        answer = viewer.get(at("queue", name))
        assert answer.status_code == 200
        assert answer.context["queue"].name == name
    links = re.findall(
        r'href="([^"]+/queue/[^"]+/change/)"', viewer.get(at("queue")).content.decode()
    )
    assert len(links) == 5
    assert {viewer.get(each.replace("&amp;", "&")).status_code for each in links} == {200}


# -- Redis away


@pytest.mark.parametrize(("page", "item"), ADDRESSES)
def test_a_page_says_so_where_redis_is_away(viewer, settings, periodic, page, item):
    settings.COGWORKER_REDIS = "redis://user:very-secret@127.0.0.1:1/0"
    answer = viewer.get(at(page, item))
    assert answer.status_code == 503
    text = answer.content.decode()
    assert "Redis is away" in text
    assert "does not answer" in text
    assert "very-secret" not in text
    assert "Traceback" not in text
    part = viewer.get(at(page, item, "?_live=1"))
    assert part.status_code == 503
    assert "<html" not in part.content.decode()


def test_an_action_says_that_it_may_not_have_been_done(admin, settings):
    settings.COGWORKER_REDIS = "redis://127.0.0.1:1/0"
    answer = admin.post(at("queue") + "act/", {"action": "pause", "item": "mail"})
    assert answer.status_code == 503
    assert "not known whether" in answer.content.decode()


def test_a_key_of_the_wrong_type_is_no_outage(busy, holder):
    busy.delete("cogworker:processes")
    busy.set("cogworker:processes", "x")
    given = {"action": "quiet", "item": WORKER}
    answer = holder("steer_workers").post(at("worker") + "act/", given)
    assert answer.status_code == 503
    assert "Redis answers with an error" in answer.content.decode()


# -- who may look


@pytest.mark.parametrize(("page", "item"), ADDRESSES)
def test_who_may_look(busy, viewer, passer, holder, page, item):
    address = at(page, item)
    stranger = Client().get(address)
    assert stranger.status_code == 302
    assert "/login/" in stranger.headers["Location"]
    assert passer.get(address).status_code == 403
    assert passer.get(address + "?_live=1").status_code == 403
    assert viewer.get(address).status_code == 200
    assert holder("manage_jobs", look=False).get(address).status_code == 200


def test_the_index_of_the_admin_lists_the_pages_for_those_who_may_look(
    redis_client, viewer, passer
):
    listed = viewer.get("/admin/").content.decode()
    assert [each for each in LISTS if at(each) not in listed] == []
    assert "Background jobs" in listed
    assert at("queue") not in passer.get("/admin/").content.decode()


def test_there_is_nothing_else_below_a_page(redis_client, admin):
    for each in ("add/", "1/delete/", "1/history/"):
        assert admin.get(at("queue") + each).status_code == 404


# -- frame


@pytest.mark.parametrize(("page", "item"), ADDRESSES)
def test_a_page_has_its_frame_and_its_part_alone_has_none(busy, viewer, page, item):
    text = viewer.get(at(page, item)).content.decode()
    tabs = re.search(r'<nav class="cog-tabs".*?</nav>', text, re.DOTALL)
    assert tabs is not None
    assert [each for each in LISTS if at(each) not in tabs[0]] == []
    assert tabs[0].count('aria-current="page"') == 1
    assert re.search(r'class="breadcrumbs".*Background jobs', text, re.DOTALL)
    part = viewer.get(at(page, item, "?_live=1")).content.decode()
    assert "<html" not in part
    assert "cog-tabs" not in part


def test_the_refreshed_part_keeps_the_query(busy, viewer):
    text = viewer.get(at("queue", query="?q=def&p=1")).content.decode()
    poll = re.search(r'data-cog-poll="([^"]+)"', text)
    assert poll is not None
    part = viewer.get(at("queue") + poll[1].replace("&amp;", "&")).content.decode()
    assert ">default</a>" in part
    assert ">low</a>" not in part
    # The way back from an action is the page, not its part.
    assert "_live" not in viewer.get(at("queue", query="?_live=1&q=def")).context["back"]


@pytest.mark.parametrize("query", ["?q=x", "?jid=j", "?order=oldest", "?cursor=1~0~0"])
def test_a_history_that_was_searched_stands_still(busy, viewer, query):
    assert "data-cog-poll" in viewer.get(at("history")).content.decode()
    assert "data-cog-poll" not in viewer.get(at("history", query=query)).content.decode()


# -- strictness


@pytest.mark.parametrize("full", ["busy", "redis_client"])
@pytest.mark.parametrize(("page", "item"), ADDRESSES)
def test_no_inline_code_no_foreign_address_and_tags_in_good_order(
    request, periodic, admin, page, item, full
):
    request.getfixturevalue(full)
    outline = Outline(admin.get(at(page, item)).content.decode())
    assert outline.refused == []
    assert outline.open == []


def test_a_nonce_of_the_project_is_on_our_script_and_style(busy, viewer, settings):
    options = settings.TEMPLATES[0]["OPTIONS"]
    path = "tests.admin.nonces.nonce"
    settings.TEMPLATES = [
        {
            **settings.TEMPLATES[0],
            "OPTIONS": {"context_processors": [*options["context_processors"], path]},
        }
    ]
    text = viewer.get(at("overview")).content.decode()
    assert re.search(r'<script src="[^"]*cogworker\.js" defer nonce="n0nce">', text)
    assert re.search(r'<link rel="stylesheet" href="[^"]*cogworker\.css" nonce="n0nce">', text)


@pytest.mark.parametrize(("page", "item"), ADDRESSES)
def test_looking_changes_nothing(busy, admin, page, item):
    busy.sadd("cogworker:processes", "gone:1:0123456789ab")  # a worker that was killed
    before = everything(busy)
    admin.get(at(page, item))
    admin.get(at(page, item, "?_live=1"))
    assert everything(busy) == before


#: Other views of the lists: parts, orders, states. A search goes on for a time and is not among them.
VIEWS = [
    ("overview", "?period=182"),
    ("overview", "?_live=1"),
    *(("job", f"?state={each}") for each in ("worker", "queue", "schedule", "retry", "dead")),
    ("job", "?_live=1"),
    *((each, "?cursor=0_0_3.0") for each in ("scheduled", "retry", "dead")),
    ("queue", "?p=2"),
    ("queue", "?q=def"),
    ("periodic", "?p=2"),
    ("periodic", "?q=0"),
    ("worker", "?p=2"),
    ("worker", "?_live=1"),
    *(("history", f"?status={each}") for each in ("success", "failed")),
    ("history", "?order=oldest"),
    ("history", "?since=1970-01-01T00:00"),
    ("error", "?order=count"),
    ("error", "?p=2"),
    ("jobclass", "?p=2"),
    ("jobclass", "?q=a"),
]
LOOKS = [
    *((*each, "") for each in ADDRESSES),
    *((page, "", query) for page, query in VIEWS),
    ("jobclass", CLASS, "?period=week"),
]


def flood(client, settings) -> None:
    """Far more of everything than a page shows; none of it is of the kind that `busy` has made."""
    now, pipe = time.time(), client.pipeline()
    long = "x" * 300
    for number in range(200):
        pipe.sadd("cogworker:queues", f"queue{number}")
        pipe.zadd("cogworker:history:classes", {f"a.b.Class{number}": now})
        for run in range(10):
            record = f'{{"jid":"{number}-{run}","class":"x","queue":"q","attempt":1,"seconds":1,'
            record += f'"args":["{long}"]}}'
            pipe.zadd("cogworker:history:success", {record: number + run})
        for name in ("schedule", "retry", "dead"):
            jobs = {
                f'{{"jid":"{name}{number}-{each}","class":"x","args":["{long}"]}}': each
                for each in range(15)
            }
            pipe.zadd(f"cogworker:{name}", jobs)
        many = (
            f'{{"jid":"queued{number}-{each}","class":"x","args":["{long}"]}}' for each in range(15)
        )
        pipe.lpush("cogworker:queue:default", *many)
        told = {"class": "x", "error": "E", "where": "w", "line": "l", "message": "m", "jid": "j"}
        row = f"{now:.3f} 1 {now:.3f} {int(now // 3600)}:1\n{json.dumps(told)}"
        pipe.hset("cogworker:errors:groups", f"{number:012x}", row)
        identity = f"host:{number}:0123456789ab"
        pipe.hset("cogworker:holders", identity, 21)
        for ticket in range(20):
            job = f'{{"class":"x","jid":"{number}-{ticket}","args":["{long}"]}}'
            pipe.hset(f"cogworker:workers:{identity}", str(ticket + 1), f"5000 default\n{job}")
    pipe.execute()
    for number in range(200):
        add_worker(client, f"host:{number}:0123456789ab")
    settings.COGWORKER_PERIODIC = {
        f"entry{number}": {"job": CLASS, "cron": "0 3 * * *", "args": ["a"]}
        for number in range(100)
    } | settings.COGWORKER_PERIODIC


@pytest.mark.parametrize(("page", "item", "query"), LOOKS)
def test_what_a_page_asks_of_redis_does_not_depend_on_how_much_there_is(
    busy, viewer, settings, page, item, query
):
    """As many round trips, and no more of a set, a queue or the workers' hands than a page can show."""

    def asked():
        begun = busy.info("stats")["total_net_output_bytes"]
        with counted() as trips:
            assert viewer.get(at(page, item, query)).status_code == 200
        return trips.number, busy.info("stats")["total_net_output_bytes"] - begun

    busy.hset("cogworker:holders", WORKER, 2)
    busy.hset(f"cogworker:workers:{WORKER}", "1", '5000 q\n{"class":"x","jid":"j","args":[]}')
    asked()  # connections are open then
    few, _ = asked()
    flood(busy, settings)
    many, read = asked()
    assert many == few <= 12
    # One of the sets, and what is in the workers' hands, has more than a million bytes.
    assert read < 500_000


# -- workers and the server


def test_workers_say_what_they_run_with(busy, viewer):
    text = "1 · Python 3.13 · Django 5.2.8 · redis-py 7.1.0"
    assert text in viewer.get(at("worker")).content.decode()
    detail = viewer.get(at("worker", WORKER)).content.decode()
    assert "<dt>redis-py</dt><dd>7.1.0</dd>" in detail
    key = f"cogworker:process:{WORKER}"
    busy.hset(key, "info", json.dumps({"python": "3.14.1", "gil": False}))
    assert "Python 3.14.1 (without the GIL)</div>" in viewer.get(at("worker")).content.decode()
    assert "<dd>off</dd>" in viewer.get(at("worker", WORKER)).content.decode()
    busy.hset(key, "info", "{}")
    assert viewer.get(at("worker")).status_code == viewer.get(at("worker", WORKER)).status_code


def test_workers_and_what_they_can_run_are_counted(redis_client, viewer):
    """None: not lit. One quiet: not lit. One that works: lit."""

    def seen():
        for page in ("overview", "worker"):
            answer = viewer.get(at(page))
            lit = "cog-dot cog-lit" in answer.content.decode()
            yield answer.context["working"], answer.context["slots"], lit

    assert set(seen()) == {(0, 0, False)}
    add_worker(redis_client, "a:1:0", quiet=True)
    assert set(seen()) == {(0, 10, False)}
    add_worker(redis_client, "b:1:0")
    assert set(seen()) == {(1, 20, True)}


def test_the_number_of_running_jobs_is_that_of_the_table_whatever_the_last_beat_said(busy, viewer):
    for ticket in range(3):
        job = {"class": CLASS, "jid": f"run-{ticket}", "queue": "low", "args": [], "v": 1}
        taken = f"{int(time.time() * 1000) - 5_000} low\n{json.dumps(job)}"
        busy.hset(f"cogworker:workers:{WORKER}", str(ticket + 1), taken)
    busy.hset("cogworker:holders", WORKER, 4)
    for address in (at("worker"), at("worker", WORKER)):
        text = viewer.get(address).content.decode()
        assert re.search(r">\s*3 / 10", text)
        assert re.findall(r"<code>(run-\d)</code>", text) == ["run-0", "run-1", "run-2"]
        assert "5.0 s</td>" in text or re.search(r">[5-9]\.\d s</td>", text)
    # A worker that is gone has no row, but what it held is still there for the next to bring back.
    busy.delete(f"cogworker:process:{WORKER}")
    text = viewer.get(at("worker")).content.decode()
    assert "silent" in text
    assert "lives no more" in viewer.get(at("worker", WORKER)).content.decode()


def test_a_class_has_its_percentiles_of_both_times_as_charts_and_tables(busy, viewer):
    now = time.time()
    yesterday = f"cogworker:history:times:{CLASS}:{int(now // 3600) - 30}"
    busy.hset(yesterday, mapping={"success": 90, "r41": 45, "r61": 42, "r81": 3, "w3": 90})
    day = viewer.get(at("jobclass", CLASS))
    runs, seconds, wait = day.context["charts"]
    assert [len(each.bars) for each in (runs, seconds, wait)] == [25, 25, 25]
    assert day.context["stats"].runs == 7
    week = viewer.get(at("jobclass", CLASS, "?period=week"))
    runs, seconds, wait = week.context["charts"]
    assert len(runs.bars) in (28, 29)
    assert week.context["stats"].runs == 97
    (bar,) = [each for each in seconds.bars if each.values[0] and each.values[2] > each.values[0]]
    assert list(bar.values) == sorted(bar.values)
    text = week.content.decode()
    assert text.count('<th scope="col" class="cog-num">99 %</th>') == 3
    assert text.count('<svg viewBox="0 0 ') == 3
    for kind in ("half", "plain", "few"):
        assert f'<rect class="cog-{kind}"' in text
    # The highest value is at the upper edge: its parts do not add up to more.
    heights = [sum(float(piece.height) for piece in each.pieces) for each in seconds.columns()]
    assert max(heights) == 100
    assert viewer.get(at("jobclass", CLASS, "?period=x")).context["period"] == "day"


def test_arguments_of_a_run_are_shown_as_people_write_them(redis_client, viewer):
    record = {"jid": "j", "class": CLASS, "queue": "q", "attempt": 1, "seconds": 1}
    record |= {"args": [7, "ü", {"$": "date", "v": "2026-11-30"}], "kwargs": {"to": None}}
    redis_client.zadd(
        "cogworker:history:success", {json.dumps(record, separators=(",", ":")): 1000}
    )
    text = viewer.get(at("history")).content.decode()
    assert "<code>7, &quot;ü&quot;, 2026-11-30, to=null</code>" in text


def test_a_pause_shows_with_its_way_back(busy, admin):
    address = at("queue", "default")
    assert "Pause the queue default" in admin.get(address).content.decode()
    admin.post(at("queue") + "act/", {"action": "pause", "item": "default"})
    for each in (address, at("queue"), at("overview")):
        text = admin.get(each).content.decode()
        assert '<span class="cog-badge cog-warn">paused</span>' in text
        assert "Resume the queue default" in text
        assert "Pause the queue default" not in text


def test_the_overview_has_the_numbers_of_the_server_or_dashes(make_redis_server, viewer, settings):
    server = make_redis_server()
    settings.COGWORKER_REDIS = server.url
    facts = server.client().info()
    version = facts.get("valkey_version") or facts["redis_version"]
    told = viewer.get(at("overview")).content.decode()
    told = told[told.index(">Redis</h2>") :]
    assert f" {version}</dd>" in told
    assert told.count("<dd>\N{EN DASH}</dd>") == 0
    server.client().execute_command("ACL", "SETUSER", "default", "-info")
    told = viewer.get(at("overview")).content.decode()
    told = told[told.index(">Redis</h2>") :]
    assert told.count("<dd>\N{EN DASH}</dd>") == 5


# -- times and numbers


def test_times_are_in_the_zone_of_django_and_machines_can_read_them(busy, viewer, settings):
    settings.TIME_ZONE = "Asia/Tokyo"
    busy.zadd("cogworker:losses", {'{"at": 1700000000, "how": "x", "pid": 1, "lived": 1}': 1})
    text = viewer.get(at("worker")).content.decode()
    assert (
        '<time datetime="2023-11-14T22:13:20Z" data-cog-time="datetime">11/15/2023 07:13:20</time>'
        in text
    )


def test_no_language_spoils_the_drawings(busy, viewer, settings):
    """A decimal comma in an attribute would be no number."""
    settings.LANGUAGE_CODE = "de"
    with translation.override("de"):
        text = viewer.get(at("overview")).content.decode()
    drawing = re.search(r"<svg viewBox.*?</svg>", text, re.DOTALL)
    assert drawing is not None
    numbers = re.findall(r'\b(?:x|y|width|height)="([^"]+)"', drawing[0])
    assert numbers
    assert all(re.fullmatch(r"\d+(\.\d+)?", each) for each in numbers)


def test_a_chart_has_a_table_with_the_same_numbers(busy, viewer):
    text = viewer.get(at("overview")).content.decode()
    chart = text[text.index("The last 24 hours") : text.index("Runs per day")]
    assert 'aria-hidden="true"' in chart[chart.index("<svg") :][:200]
    rows = re.findall(r'<td class="cog-num">(\d+)</td>', chart)
    assert len(rows) == 48
    assert rows[-2:] == ["5", "2"]


# -- history


def test_runs_are_sorted_and_the_page_says_which(redis_client, viewer):
    """P261"""
    pipe = redis_client.pipeline()
    for number in range(1_100):
        record = f'{{"jid":"j{number}","class":"a.B","queue":"q","attempt":1,"seconds":{number}}}'
        pipe.zadd("cogworker:history:success", {record: 9000 - number})
    pipe.execute()

    def seen(query):
        answer = viewer.get(at("history", query=query))
        return [each.item.jid for each in answer.context["rows"]], answer

    # On a machine that is busy with other things, too.
    with mock.patch.object(History.ranked, "__kwdefaults__", {**DEFAULTS, "budget": 60}):
        first, answer = seen("?order=longest")
        assert first == [f"j{number}" for number in range(1099, 1074, -1)]
        assert "Sorted are" not in answer.content.decode()
        assert "The first 1,000 of 1,100 are listed." in answer.content.decode()
        assert '<option value="longest" selected>' in answer.content.decode()
        second, _ = seen(answer.context["pager"].next)
        assert second == [f"j{number}" for number in range(1074, 1049, -1)]
        assert "data-cog-poll" not in answer.content.decode()
        last, answer = seen("?order=longest&p=40")
        assert last == [f"j{number}" for number in range(124, 99, -1)]
        assert seen("?order=longest&p=99999")[0] == last
        shortest, answer = seen("?order=shortest&q=j1")
        assert shortest[:3] == ["j1", "j10", "j11"]
        assert "are listed." not in answer.content.decode()
    # Where the time is over before all were looked at it says how far it came, and what to do about it.
    with mock.patch.object(History.ranked, "__kwdefaults__", {**DEFAULTS, "budget": 0}):
        first, answer = seen("?order=longest")
        assert first == [f"j{number}" for number in range(499, 474, -1)]
        text = answer.content.decode()
        assert "Sorted are the 500 that match of the newest 500 runs, back to <time" in text
        assert "the older ones of these 1,100 were not looked at" in text
        some, answer = seen("?order=longest&since=1970-01-01T02:00&until=1970-01-01T02:15")
        assert some[0] == "j1099"  # the oldest, which is out of reach above
        assert "Sorted are" not in answer.content.decode()
    none, answer = seen("?order=waited&q=nothing")
    assert none == []
    assert "No run that is kept matches" in answer.content.decode()


def test_runs_are_filtered_and_paged_on_the_server(busy, viewer):
    for number in range(60):
        record = f'{{"jid":"j{number}","class":"a.B","queue":"q","attempt":1,"seconds":1,"args":[{number}]}}'
        busy.zadd("cogworker:history:success", {record: 1000 + number})

    def jids(query):
        answer = viewer.get(at("history", query=query))
        return [each.item.jid for each in answer.context["rows"]], answer

    first, answer = jids("?class=a.B")
    assert first == [f"j{number}" for number in range(59, 34, -1)]
    second, answer = jids(answer.context["pager"].next)
    assert second == [f"j{number}" for number in range(34, 9, -1)]
    third, answer = jids(answer.context["pager"].next)
    assert third == [f"j{number}" for number in range(9, -1, -1)]
    assert answer.context["pager"].next == ""
    assert jids(answer.context["pager"].first)[0] == first
    assert jids("?order=oldest")[0][:2] == ["j0", "j1"]
    assert jids("?status=failed")[0] == ["run-bad"]
    odd, _ = jids("?status=nonsense&order=nonsense&cursor=nonsense&p=x")
    assert sorted(odd[:2]) == ["run-bad", "run-good"]
    found, answer = jids("?jid=run-bad")
    assert found == ["run-bad"]
    assert "Show those of all jobs" in answer.content.decode()
    assert "No run that is kept matches" in jids("?q=nowhere")[1].content.decode()


def test_runs_of_a_span_of_time_and_of_a_queue(redis_client, viewer, settings):
    """P261: a broken filter is ignored."""
    settings.TIME_ZONE = "Asia/Tokyo"
    for number in range(60):
        queue = "slow" if number % 2 else "quick"
        record = f'{{"jid":"j{number}","class":"a.B","queue":"{queue}","attempt":1,"seconds":1}}'
        redis_client.zadd("cogworker:history:success", {record: 60 * number})

    def jids(**asked):
        answer = viewer.get(at("history"), asked)
        return [each.item.jid for each in answer.context["rows"]], answer

    found, answer = jids(since="1970-01-01T09:10", until="1970-01-01T09:12")
    assert found == ["j12", "j11", "j10"]
    text = answer.content.decode()
    assert "3 runs are kept of this time." in text
    assert "Times are in the zone Asia/Tokyo." in text
    assert 'name="since" value="1970-01-01T09:10"' in text
    assert "data-cog-poll" not in text
    assert jids(until="1970-01-01T00:02+00:00")[0] == ["j2", "j1", "j0"]
    assert jids(queue="slow", since="1970-01-01T09:55")[0] == ["j59", "j57", "j55"]
    first, answer = jids(until="1970-01-01T09:30")
    more = viewer.get(at("history", query=answer.context["pager"].next)).context["rows"]
    assert [*first, *(each.item.jid for each in more)] == [f"j{at}" for at in range(30, -1, -1)]
    for odd in ("yesterday", "1970-13-01T00:00", "0"):
        assert len(jids(since=odd, until=odd)[0]) == 25
    assert len(jids(since="0001-01-01T00:00", until="9999-12-31T23:59")[0]) == 25
    assert "No run that is kept matches" in jids(since="2026-01-01T00:00")[1].content.decode()


def test_every_item_of_the_lists_leads_to_a_page(busy, viewer):
    for page, item in ITEMS.items():
        assert at(page, item) in viewer.get(at(page)).content.decode()
