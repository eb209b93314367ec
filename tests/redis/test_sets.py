"""Looking at what waits: pages, search, records; the number of round trips."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from django_cogworker.api import (
    Criteria,
    DeadSet,
    Queue,
    RetrySet,
    ScheduledSet,
    WorkSet,
)
from django_cogworker.client import push_bulk
from django_cogworker.exceptions import InvalidQuery
from django_cogworker.store.store import get_store
from django_cogworker.store.values import ExchangeRequest
from tests.project.jobs import Append, Echo
from tests.redis.waiting_jobs import DEAD, QUEUE, RETRY, SCHEDULE, enqueue, failed, jids, put
from tests.support.round_trips import counted

ME = "host:1:aaaaaaaaaaaa"


def pages(shelf: Any, limit: int, **more: Any) -> list[list[str]]:
    """The jids of all pages."""
    found: list[list[str]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = shelf.page(cursor, limit, **more)
        found.append(jids(page.entries))
        cursor = page.cursor
    return found


def flat(lists: list[list[str]]) -> list[str]:
    return [each for some in lists for each in some]


class TestPages:
    def test_the_next_first_and_of_the_dead_the_newest(self, redis_client):
        put(redis_client, SCHEDULE, "a", "b", "c")
        put(redis_client, RETRY, "a", "b", "c")
        put(redis_client, DEAD, "a", "b", "c")
        assert pages(ScheduledSet(), 2) == pages(RetrySet(), 2) == [["a", "b"], ["c"]]
        assert pages(DeadSet(), 2) == [["c", "b"], ["a"]]
        assert pages(DeadSet(), 2, backwards=True) == [["a", "b"], ["c"]]
        assert (len(DeadSet()), DeadSet().page(limit=2).total) == (3, 3)
        assert [each.at for each in DeadSet()] == [102, 101, 100]

    def test_an_empty_set_has_one_empty_page(self, redis_client):
        page = DeadSet().page()
        assert (page.entries, page.cursor, page.total) == ([], None, 0)
        assert list(Queue("nobody")) == []

    def test_equal_scores_are_counted_and_what_went_behind_the_cursor_hides_nothing(
        self, redis_client
    ):
        names = [f"j{number:02}" for number in range(20)]
        members = [failed(each) for each in names]
        redis_client.zadd(DEAD, dict.fromkeys(members, 7.0))
        redis_client.zadd(DEAD, {failed("last"): 9.0})
        assert flat(pages(DeadSet(), 3)) == ["last", *names[::-1]]
        page = DeadSet().page(limit=1)
        redis_client.zrem(DEAD, failed("last"))
        assert jids(DeadSet().page(page.cursor, 2).entries) == ["j19", "j18"]

    def test_a_queue_in_the_order_of_fetching_with_priorities(self, redis_client):
        enqueue(redis_client, "a", "b", "c")
        push_bulk(
            [{"class": "x", "args": [], "jid": f"p{each}", "priority": each} for each in (-5, 5, 9)]
        )
        wanted = ["p9", "p5", "a", "b", "c", "p-5"]
        for limit in (1, 2, 3, 4, 6, 10):
            assert flat(pages(Queue(), limit)) == wanted
            assert flat(pages(Queue(), limit, backwards=True)) == wanted[::-1]
        request = ExchangeRequest(ME, 1, 6, ("default",), (), ())
        fetched = [json.loads(each.payload)["jid"] for each in get_store().exchange(request).jobs]
        assert fetched == wanted

    def test_jobs_pushed_and_fetched_meanwhile_hide_nothing_backwards(self, redis_client):
        enqueue(redis_client, "a", "b", "c", "d")
        page = Queue().page(limit=2, backwards=True)
        assert jids(page.entries) == ["d", "c"]
        enqueue(redis_client, "e")
        redis_client.rpop(QUEUE)
        assert jids(Queue().page(page.cursor, 5, backwards=True).entries) == ["c", "b"]

    @pytest.mark.parametrize("size", [3, 3000])
    def test_a_page_is_one_round_trip_however_much_waits(self, redis_client, size):
        names = [str(number) for number in range(size)]
        put(redis_client, DEAD, *names)
        enqueue(redis_client, *names)
        assert len(DeadSet()) == Queue().size == size
        for shelf in (DeadSet(), Queue()):
            page = shelf.page(limit=2)
            handles = [each.handle for each in page.entries]
            with counted() as trips:
                shelf.page(limit=2)
                shelf.page(page.cursor, 2)
                assert jids(shelf.get(handles)) == jids(page.entries)
            assert trips.number == 3

    @pytest.mark.parametrize("cursor", ["x", "0", "-1_0", "5_0", "0_-1", "0_1_nan", "0_1_2_3", 7])
    def test_what_is_no_cursor_is_refused(self, redis_client, cursor):
        with pytest.raises(InvalidQuery, match="no cursor"):
            DeadSet().page(cursor)

    @pytest.mark.parametrize("limit", [0, -1, 1001, True, "5"])
    def test_so_is_a_limit_that_is_none(self, redis_client, limit):
        with pytest.raises(InvalidQuery, match="limit"):
            DeadSet().page(limit=limit)
        with pytest.raises(InvalidQuery, match="limit"):
            Queue().search(limit=limit)

    def test_a_key_of_the_wrong_type_shows_nothing_and_hides_nothing(self, redis_client, caplog):
        redis_client.set(QUEUE, "x")
        redis_client.set(DEAD, "x")
        push_bulk([{"class": "x", "args": [], "jid": "p", "priority": 3}])
        assert jids(Queue().page().entries) == ["p"]
        assert DeadSet().page().entries == []
        assert len(DeadSet()) == 0
        assert "unusable" in caplog.text


class TestRecords:
    def test_what_a_record_tells(self, redis_client):
        Echo.set(tags=["red"], priority=4).perform_async(
            dt.date(2026, 11, 30), [1, "é"], name=b"xy", pair=(1, 2)
        )
        (record,) = Queue()
        assert (record.job_class, record.queue, record.place) == (Echo.job_name, "default", "queue")
        assert record.args == [dt.date(2026, 11, 30), [1, "é"]]
        assert record.kwargs == {"name": b"xy", "pair": (1, 2)}
        assert record.arguments == '2026-11-30, [1, "é"], name=eHk=, pair=(1, 2)'
        assert (record.tags, record.priority, record.attempt, record.failures) == (["red"], 4, 1, 0)
        assert (record.enqueued_at or 0) >= (record.created_at or 0) > 1e9
        assert (record.error_class, record.error_message, record.failed_at) == ("", "", None)
        assert not record.unparseable
        assert record.item["jid"] == record.jid
        assert json.loads(record.raw) == record.item

    def test_an_entry_has_its_time_and_its_failure(self, redis_client):
        put(redis_client, RETRY, "a", at=55.5)
        (entry,) = RetrySet()
        assert (entry.at, entry.attempt, entry.failures, entry.failed_at) == (55.5, 2, 1, 2.0)
        assert (entry.error_class, entry.error_message) == ("ValueError", "a went wrong")
        put(redis_client, DEAD, "a")
        (dead,) = DeadSet()
        assert dead.attempt == 1

    @pytest.mark.parametrize("junk", [b"junk", b"[1]", b"\xff\xfe", b'{"class":"x"}', b""])
    def test_what_is_no_job_has_a_name_of_its_own(self, redis_client, junk):
        """P266"""
        redis_client.zadd(RETRY, {junk: 5})
        first, again = RetrySet().page().entries[0], RetrySet().page().entries[0]
        assert first.job_class == "(unparseable)"
        assert first.unparseable
        assert first.jid == again.jid
        assert first.jid.startswith("raw-")
        found = RetrySet().find(first.jid)
        assert found is not None
        assert found.raw == junk
        assert RetrySet().search(jid=first.jid[:9]).entries[0].raw == junk
        assert (first.args, first.kwargs, first.tags, first.queue) == ([], {}, [], "")
        assert first.error_message
        assert first.arguments == junk.decode("utf-8", "backslashreplace")
        assert jids(RetrySet().search(job_class="unparse").entries) == [first.jid]

    def test_odd_fields_do_no_harm(self, redis_client):
        odd = failed(
            "\ud800", tags=[1, "\udfff"], created_at="x", error_message=7, args=[{"$": "new"}]
        )
        redis_client.zadd(RETRY, {odd: 5})
        (entry,) = RetrySet()
        assert entry.args == [{"$": "new"}]
        assert entry.tags == ["\\udfff"]
        assert (entry.created_at, entry.error_message) == (None, "")
        entry.arguments.encode()


class TestSearch:
    @pytest.fixture(autouse=True)
    def some(self, redis_client):
        mail: dict[str, Any] = {
            "class": "shop.Mail",
            "tags": ["red"],
            "error_class": "smtp.TimeOut",
        }
        put(redis_client, RETRY, "one", **mail, args=["Anna@Example.org", 'quote"d'])
        put(redis_client, RETRY, "two", at=200, **mail, queue="mail", args=["Zoë", "Straße"])
        put(redis_client, RETRY, "three", at=300, kwargs={"size": 4711}, error_group="abc")

    @pytest.mark.parametrize(
        ("fields", "wanted"),
        [
            ({}, ["one", "two", "three"]),
            ({"job_class": "MAIL"}, ["one", "two"]),
            ({"job_class": "gone"}, ["three"]),
            ({"job_name": "shop.Mail"}, ["one", "two"]),
            ({"job_name": "shop.Mai"}, []),
            ({"arguments": "anna@example"}, ["one"]),
            ({"arguments": 'QUOTE\\"D'}, ["one"]),
            ({"arguments": "zOË"}, ["two"]),
            ({"arguments": "traße"}, ["two"]),
            ({"arguments": "size=4711"}, ["three"]),
            ({"arguments": "shop"}, []),
            ({"jid": "WO"}, ["two"]),
            ({"error": "timeout"}, ["one", "two"]),
            ({"error": "Three went"}, ["three"]),
            ({"queue": "mail"}, ["two"]),
            ({"queue": "mai"}, []),
            ({"tag": "red"}, ["one", "two"]),
            ({"tag": "re"}, []),
            ({"error_group": "abc"}, ["three"]),
            ({"anything": "MAIL"}, ["one", "two"]),
            ({"anything": "4711"}, ["three"]),
            ({"anything": "red"}, ["one", "two"]),
            ({"anything": "raw-"}, []),
            ({"job_class": "mail", "queue": "default", "error": "one"}, ["one"]),
        ],
    )
    def test_what_matches(self, fields, wanted):
        found = RetrySet().search(**fields)
        assert jids(found.entries) == wanted
        assert (found.looked_at, found.finished, found.cursor) == (3, True, None)
        assert (
            jids(RetrySet().search(Criteria.read(Criteria(**fields).as_dict())).entries) == wanted
        )

    def test_a_limit_gives_a_cursor_to_go_on(self):
        first = RetrySet().search(job_class="mail", limit=1)
        assert (jids(first.entries), first.looked_at, first.finished) == (["one"], 1, False)
        second = RetrySet().search(job_class="mail", limit=1, cursor=first.cursor)
        assert (jids(second.entries), second.finished) == (["two"], False)
        last = RetrySet().search(job_class="mail", cursor=second.cursor)
        assert (last.entries, last.looked_at, last.finished) == ([], 1, True)

    def test_so_does_a_budget(self, redis_client):
        put(redis_client, DEAD, *(f"j{number:04}" for number in range(1000)))
        found, cursor, steps, looked_at = [], None, 0, 0
        while steps == 0 or cursor is not None:
            matches = DeadSet().search(jid="j000", budget=0, cursor=cursor)
            assert matches.finished == (matches.cursor is None)
            found += jids(matches.entries)
            cursor, steps = json.loads(json.dumps(matches.cursor)), steps + 1
            looked_at += matches.looked_at
        assert found == [f"j000{number}" for number in range(9, -1, -1)]
        assert looked_at == 1000
        assert steps > 5

    def test_bytes_without_the_word_are_not_decoded(self, redis_client, monkeypatch):
        decoded = []

        def decode(raw: bytes) -> tuple[dict[str, Any], str]:
            decoded.append(raw)
            return {}, "no job"

        monkeypatch.setattr("django_cogworker.api.sets.fields_of", decode)
        RetrySet().search(arguments="anna@example, 5")
        assert len(decoded) == 1

    def test_by_jid(self):
        two = RetrySet().find("two")
        assert two is not None
        assert two.queue == "mail"
        assert RetrySet().find("tw") is None
        assert DeadSet().find("two") is None
        with pytest.raises(InvalidQuery):
            RetrySet().find("")

    def test_on_a_queue_the_queue_is_where_it_lies(self, redis_client):
        redis_client.lpush("cogworker:queue:low", b'{"class":"x","jid":"lost"}', b"junk")
        assert jids(Queue("low").search(queue="low", job_class="x").entries) == ["lost"]
        assert len(Queue("low").search(anything="LO").entries) == 2
        assert Queue("low").search(queue="mail").entries == []

    @pytest.mark.parametrize("fields", [{"size": 5}, {"jid": 5}, {"job_name": Exception}])
    def test_what_cannot_be_asked(self, fields):
        with pytest.raises(InvalidQuery):
            RetrySet().search(**fields)


class TestHandles:
    def test_entries_are_found_again_or_are_gone(self, redis_client):
        put(redis_client, DEAD, "a", "b", "c")
        entries = DeadSet().page().entries
        redis_client.zrem(DEAD, failed("b"))
        found = DeadSet().get([each.handle for each in entries])
        assert [each and each.jid for each in found] == ["c", None, "a"]
        assert [each.at for each in found if each] == [102, 100]

    def test_one_that_has_moved_in_a_list(self, redis_client):
        enqueue(redis_client, *map(str, range(300)))
        push_bulk([{"class": "x", "args": [], "jid": "p", "priority": 3}])
        entries = list(Queue())
        for _ in range(120):
            redis_client.rpop(QUEUE)
        enqueue(redis_client, "new")
        wanted = ["p", "119", "120", "299"]
        found = Queue().get([each.handle for each in entries if each.jid in wanted])
        assert [each and each.jid for each in found] == ["p", None, "120", "299"]
        assert [each.far for each in found if each] == [-1, 0, 179]
        assert next(each.priority for each in found if each) == 3

    @pytest.mark.parametrize("handle", ["", "5", "x~abc", "5~", 7])
    def test_what_is_no_handle_is_refused(self, redis_client, handle):
        with pytest.raises(InvalidQuery):
            DeadSet().get([handle])


class TestWork:
    def test_what_workers_hold(self, redis_client):
        Append.perform_async("a")
        Append.perform_async("b")
        redis_client.lpush(QUEUE, b"junk")
        store = get_store()
        store.exchange(ExchangeRequest(ME, 1, 2, ("default",), (), ()))
        store.exchange(ExchangeRequest("other:2:bbbbbbbbbbbb", 1, 2, ("default",), (), ()))
        store.mark_started(ME, 1)
        redis_client.hset(f"cogworker:process:{ME}", "busy", 1)
        with counted() as trips:
            work = WorkSet().read()
        assert trips.number == 3
        assert [(each.identity, each.ticket, each.alive) for each in work] == [
            (ME, 1, True),
            (ME, 2, True),
            ("other:2:bbbbbbbbbbbb", 1, False),
        ]
        assert [each.record.args for each in work] == [["a"], ["b"], []]
        assert work[2].record.unparseable
        assert work[0].queue == "default"
        assert abs(work[0].since - redis_client.time()[0]) < 5
        assert (len(WorkSet()), len(WorkSet(ME)), len(WorkSet().read(limit=1))) == (3, 2, 1)
        assert [each.outcome for each in Queue().delete(work[0].record)] == ["refused"]

    def test_no_more_is_read_than_is_asked_for_and_all_are_counted(self, redis_client):
        """However many jobs run, a page reads as many as it shows; marks beside jobs are no jobs."""
        for number in range(20):
            identity = f"host:{number:02}:aaaaaaaaaaaa"
            redis_client.hset("cogworker:holders", identity, 6)
            for ticket in range(1, 6):
                job = f'{{"class":"x","jid":"{number}-{ticket}","args":[]}}'
                redis_client.hset(f"cogworker:workers:{identity}", ticket, f"5000 default\n{job}")
            redis_client.hset(f"cogworker:workers:{identity}", "!1", "1")
        redis_client.hset("cogworker:holders", "idle:1:aaaaaaaaaaaa", 1)
        with counted() as trips:
            held = WorkSet().held(7)
        assert trips.number == 3
        assert [each.record.jid for each in held.entries] == [f"0-{n}" for n in range(1, 6)] + [
            "1-1",
            "1-2",
        ]
        assert trips.sent[-1].count(b"HSCAN") == 2
        assert (held.total, len(WorkSet()), held.sizes["idle:1:aaaaaaaaaaaa"]) == (100, 100, 0)
        assert len(held.sizes) == 21

    def test_a_spoilt_key_hides_no_other_worker(self, redis_client):
        Append.perform_async("a")
        get_store().exchange(ExchangeRequest(ME, 1, 1, ("default",), (), ()))
        redis_client.hset("cogworker:holders", "a:1:x", 5)
        redis_client.set("cogworker:workers:a:1:x", "junk")
        assert [each.identity for each in WorkSet()] == [ME]
