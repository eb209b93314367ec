"""Pushes to a real Redis: every form, order, bulk, bad input, and a server that will not take them."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.test import override_settings

from django_cogworker import Job, job
from django_cogworker.client import apush, apush_bulk, push, push_bulk
from django_cogworker.exceptions import (
    ArgumentError,
    CogworkerError,
    InvalidPayload,
    PayloadTooLarge,
    PushError,
)
from tests.support.needs import not_here

QUEUE = "cogworker:queue:default"
SCHEDULE = "cogworker:schedule"
WHEN = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)


class Plain(Job):
    def perform(self, *args: Any, **kwargs: Any) -> None: ...


class Ranked(Job, queue="ranked"):
    def perform(self, *args: Any) -> None: ...


@job
def function(*args: Any) -> None: ...


def listed(client: redis.Redis, key: str = QUEUE) -> list[dict[str, Any]]:
    """The jobs of a queue's list, the next one to run first."""
    found: list[Any] = client.lrange(key, 0, -1)
    return [json.loads(each) for each in reversed(found)]


def scheduled(client: redis.Redis) -> list[tuple[float, dict[str, Any]]]:
    found: list[Any] = client.zrange(SCHEDULE, 0, -1, withscores=True)
    return [(score, json.loads(each)) for each, score in found]


def evals(client: redis.Redis) -> int:
    """How many scripts the server has run so far."""
    counts = client.info("commandstats")
    return sum(counts.get(f"cmdstat_{each}", {}).get("calls", 0) for each in ("eval", "evalsha"))


def resident_memory() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def _gathered(*awaitables: Any) -> Any:
    return [await each for each in awaitables]


def run(*awaitables: Any) -> list[Any]:
    result: list[Any] = asyncio.run(_gathered(*awaitables))
    return result


NOW: list[tuple[str, Callable[[], Any]]] = [
    ("perform_async", lambda: Plain.perform_async(1)),
    ("set", lambda: Plain.set(retry=3).perform_async(1)),
    ("bulk", lambda: Plain.perform_bulk([(1,)])[0]),
    ("set bulk", lambda: Plain.set(retry=3).perform_bulk([[1]])[0]),
    ("aperform_async", lambda: run(Plain.aperform_async(1))[0]),
    ("set aperform_async", lambda: run(Plain.set(retry=3).aperform_async(1))[0]),
    ("abulk", lambda: run(Plain.aperform_bulk([(1,)]))[0][0]),
    ("function", lambda: function.perform_async(1)),
    ("afunction", lambda: run(function.aperform_async(1))[0]),
    ("function bulk", lambda: function.perform_bulk([(1,)])[0]),
    ("push", lambda: push({"class": Plain, "args": [1]})),
    ("push_bulk", lambda: push_bulk([{"class": "x", "args": (1,)}])[0]),
    ("apush", lambda: run(apush({"class": Plain, "args": [1]}))[0]),
    ("apush_bulk", lambda: run(apush_bulk([{"class": Plain, "args": [1]}]))[0][0]),
]

LATER: list[tuple[str, Callable[[], Any]]] = [
    ("perform_at", lambda: Plain.perform_at(WHEN, 1)),
    ("perform_at epoch", lambda: Plain.perform_at(WHEN.timestamp(), 1)),
    ("perform_in moment", lambda: Plain.perform_in(WHEN.timestamp(), 1)),
    ("set", lambda: Plain.set(priority=5).perform_at(WHEN, 1)),
    ("bulk", lambda: Plain.perform_bulk([(1,)], at=WHEN)[0]),
    ("aperform_at", lambda: run(Plain.aperform_at(WHEN, 1))[0]),
    ("aperform_in", lambda: run(Plain.aperform_in(WHEN.timestamp(), 1))[0]),
    ("set aperform_at", lambda: run(Plain.set(retry=1).aperform_at(WHEN, 1))[0]),
    ("abulk", lambda: run(Plain.aperform_bulk([(1,)], at=WHEN))[0][0]),
    ("function", lambda: function.perform_at(WHEN, 1)),
    ("afunction", lambda: run(function.aperform_at(WHEN, 1))[0]),
    ("push", lambda: push({"class": Plain, "args": [1], "at": WHEN.timestamp()})),
    ("push_bulk", lambda: push_bulk([{"class": "x", "args": [1], "at": WHEN.timestamp()}])[0]),
]


def ids(table: list[tuple[str, Any]]) -> list[str]:
    return [name for name, _ in table]


@pytest.mark.parametrize(("name", "enqueue"), NOW, ids=ids(NOW))
@pytest.mark.parametrize("fetch", ["reliable", "basic"])
class TestEveryFormNow:
    def test_the_job_lies_on_its_queue(self, redis_client, name, enqueue, fetch):
        """A1, A10"""
        with override_settings(COGWORKER_FETCH=fetch):
            jid = enqueue()
        (payload,) = listed(redis_client)
        assert payload["jid"] == jid
        assert payload["args"] == [1]
        assert payload["enqueued_at"] >= payload["created_at"]
        assert redis_client.smembers("cogworker:queues") == {b"default"}
        assert redis_client.lrange(f"{QUEUE}:tokens", 0, -1) == [b"1"]


@pytest.mark.parametrize(("name", "enqueue"), LATER, ids=ids(LATER))
@pytest.mark.parametrize("fetch", ["reliable", "basic"])
class TestEveryFormLater:
    def test_the_job_lies_in_the_schedule(self, redis_client, name, enqueue, fetch):
        """A5"""
        with override_settings(COGWORKER_FETCH=fetch):
            jid = enqueue()
        ((score, payload),) = scheduled(redis_client)
        assert score == WHEN.timestamp() == payload["at"]
        assert payload["jid"] == jid
        assert "enqueued_at" not in payload
        assert not redis_client.exists(QUEUE)


def test_a_due_time_in_the_past_goes_to_the_schedule_too(redis_client):
    """A6"""
    Plain.perform_in(-10, 1)
    assert len(scheduled(redis_client)) == 1
    assert not redis_client.exists(QUEUE)


def test_arguments_and_a_jid_of_the_callers_arrive_unchanged(redis_client):
    """A1, A2"""
    assert push({"class": "x", "args": [1, "two"], "jid": "mine", "free": {"a": [1]}}) == "mine"
    (payload,) = listed(redis_client)
    assert (payload["args"], payload["jid"], payload["free"]) == ([1, "two"], "mine", {"a": [1]})
    assert (payload["queue"], payload["retry"], payload["v"]) == ("default", True, 1)


def test_a_queue_is_first_in_first_out(redis_client):
    for number in range(5):
        Plain.perform_async(number)
    Plain.perform_bulk([(number,) for number in range(5, 10)])
    assert [each["args"][0] for each in listed(redis_client)] == list(range(10))


@pytest.mark.parametrize("fetch", ["reliable", "basic"])
def test_priorities_are_ordered_and_each_is_first_in_first_out(redis_client, fetch):
    """Priority 0 stays in the list, which is read between the positive and the negative ones."""
    priorities = [0, -100, 100, 1, 0, -1, 100, 50, -100, 1, 99, 0]
    with override_settings(COGWORKER_FETCH=fetch):
        for number, priority in enumerate(priorities):
            if number % 2:
                Ranked.set(priority=priority).perform_async(number)
            else:
                Ranked.set(priority=priority).perform_bulk([(number,)])
    ranked = [
        json.loads(each) for each in redis_client.zrange("cogworker:queue:ranked:priority", 0, -1)
    ]
    wanted = sorted(
        ((-p, n) for n, p in enumerate(priorities) if p),
    )
    assert [each["args"][0] for each in ranked] == [n for _, n in wanted]
    zero = listed(redis_client, "cogworker:queue:ranked")
    assert [each["args"][0] for each in zero] == [0, 4, 11]
    assert not redis_client.exists(QUEUE)


class TestBulk:
    def test_results_keep_the_order_over_queues_and_times(self, redis_client):
        """A9"""
        payloads = [
            {"class": "x", "args": [n], "queue": f"q{n % 3}", "priority": n % 2}
            | ({"at": 4e9 + n} if n % 5 == 0 else {})
            for n in range(2500)
        ]
        jids = push_bulk(payloads)
        assert len(set(jids)) == 2500
        found = {each["jid"]: each["args"][0] for _, each in scheduled(redis_client)}
        for queue in range(3):
            key = f"cogworker:queue:q{queue}"
            found |= {each["jid"]: each["args"][0] for each in listed(redis_client, key)}
            ranked = map(json.loads, redis_client.zrange(f"{key}:priority", 0, -1))
            found |= {each["jid"]: each["args"][0] for each in ranked}
        assert [found[jid] for jid in jids] == list(range(2500))

    def test_nothing_is_fine(self, redis_client):
        assert Plain.perform_bulk([]) == []
        assert push_bulk(iter(())) == []
        assert redis_client.dbsize() == 0

    def test_a_hundred_thousand_in_bounded_memory_and_few_round_trips(self, redis_client):
        """Kept whole, the payloads would take 80 MB and more; the jids that are returned take 10."""
        if not Path("/proc/self/statm").exists():
            not_here("the memory of a process is read from /proc")
        grown: list[int] = []

        def calls() -> Iterator[tuple[int, str]]:
            before = resident_memory()
            for number in range(100_000):
                if number % 10_000 == 9_999:
                    grown.append(resident_memory() - before)
                yield number, "x" * 300

        before = evals(redis_client)
        jids = Plain.perform_bulk(calls())
        assert len(jids) == redis_client.llen(QUEUE) == 100_000
        assert max(grown) < 40_000_000
        assert evals(redis_client) - before <= 110
        last = json.loads(redis_client.lindex(QUEUE, 0))
        assert (last["jid"], last["args"][0]) == (jids[-1], 99_999)

    def test_large_jobs_are_sent_in_smaller_slices(self, redis_client, monkeypatch):
        Plain.perform_bulk([("x" * 500_000,) for _ in range(12)])
        assert redis_client.llen(QUEUE) == 12

    def test_what_came_before_a_bad_item_is_enqueued_in_whole_slices(self, redis_client):
        def calls() -> Iterator[Any]:
            for number in range(1500):
                yield (number,)
            yield object()

        with pytest.raises(ArgumentError, match="item 1500"):
            Plain.perform_bulk(calls())
        assert redis_client.llen(QUEUE) == 1000

    def test_an_error_of_the_iterable_reaches_the_caller(self, redis_client):
        def calls() -> Iterator[Any]:
            yield (1,)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            Plain.perform_bulk(calls())
        assert Plain.perform_async(2)


# -- bad input


BAD: list[tuple[Any, str]] = [
    (None, "mapping"),
    ("x", "mapping"),
    ([("class", "x")], "mapping"),
    (Plain, "mapping"),
    ({}, "'class'"),
    ({"class": ""}, "'class'"),
    ({"class": None}, "'class'"),
    ({"class": 3}, "'class'"),
    ({"class": dict}, "'class'"),
    ({"class": Job}, "'class'"),
    ({b"class": "x"}, "keys are texts"),
    ({"class": "x", 1: 2}, "keys are texts"),
    ({"class": "x", "args": "abc"}, "'args'"),
    ({"class": "x", "args": {"a": 1}}, "'args'"),
    ({"class": "x", "args": 3}, "'args'"),
    ({"class": "x", "args": None}, "'args'"),
    ({"class": "x", "kwargs": [1]}, "'kwargs'"),
    ({"class": "x", "kwargs": None}, "'kwargs'"),
    ({"class": "x", "kwargs": {1: 2}}, "'kwargs'"),
    ({"class": "x", "queue": ""}, "'queue'"),
    ({"class": "x", "queue": None}, "'queue'"),
    ({"class": "x", "queue": "a b"}, "'queue'"),
    ({"class": "x", "queue": "a\nb"}, "'queue'"),
    ({"class": "x", "queue": "a:tokens"}, "'queue'"),
    ({"class": "x", "queue": "q" * 201}, "'queue'"),
    ({"class": "x", "queue": 3}, "'queue'"),
    ({"class": "x", "jid": ""}, "'jid'"),
    ({"class": "x", "jid": 3}, "'jid'"),
    ({"class": "x", "jid": "j" * 64}, "'jid'"),
    ({"class": "x", "jid": "a\nb"}, "'jid'"),
    ({"class": "x", "retry": -1}, "'retry'"),
    ({"class": "x", "retry": "yes"}, "'retry'"),
    ({"class": "x", "retry": None}, "'retry'"),
    ({"class": "x", "retry": 1.5}, "'retry'"),
    ({"class": "x", "priority": 101}, "'priority'"),
    ({"class": "x", "priority": "1"}, "'priority'"),
    ({"class": "x", "priority": True}, "'priority'"),
    ({"class": "x", "at": "soon"}, "'at'"),
    ({"class": "x", "at": WHEN}, "'at'"),
    ({"class": "x", "at": True}, "'at'"),
    ({"class": "x", "at": float("nan")}, "'at'"),
    ({"class": "x", "at": float("inf")}, "'at'"),
    ({"class": "x", "at": 10**400}, "'at'"),
    ({"class": "x", "created_at": "now"}, "'created_at'"),
    ({"class": "x", "tags": "one"}, "'tags'"),
    ({"class": "x", "tags": [1]}, "'tags'"),
    ({"class": "x", "free": object()}, "'free'"),
    ({"class": "x", "free": float("nan")}, "'free'"),
    ({"class": "x", "free": {(1, 2): 3}}, "'free'"),
    ({"class": "x", "free": 10**5000}, "'free'"),
]


class TestBadInput:
    @pytest.mark.parametrize(
        ("payload", "names"), BAD, ids=[f"{n}-{each[1]}" for n, each in enumerate(BAD)]
    )
    def test_a_bad_payload_is_refused_by_name_and_nothing_is_written(
        self, redis_client, payload, names
    ):
        for enqueue in (
            lambda: push(payload),
            lambda: push_bulk([{"class": "good"}, payload]),
            lambda: run(apush(payload)),
        ):
            with pytest.raises(InvalidPayload) as caught:
                enqueue()
            assert names in str(caught.value)
            assert isinstance(caught.value, ValueError)
        assert redis_client.dbsize() == 0

    @pytest.mark.parametrize("payloads", [None, 3])
    def test_bulk_of_what_is_no_iterable(self, redis_client, payloads):
        with pytest.raises(TypeError, match="not iterable"):
            push_bulk(payloads)

    def test_bulk_of_a_single_payload_is_a_mistake(self, redis_client):
        with pytest.raises(InvalidPayload, match="mapping"):
            push_bulk({"class": "x"})  # type: ignore[dict-item]

    def test_a_payload_that_is_too_large(self, redis_client):
        with pytest.raises(PayloadTooLarge):
            push({"class": "x", "free": "x" * 1_000_001})
        assert redis_client.dbsize() == 0

    def test_the_callers_payload_stays_as_it_was(self, redis_client):
        payload = {"class": Plain, "args": [dt.date(2030, 1, 1)], "kwargs": {"a": (1,)}}
        before = dict(payload)
        push(payload)
        assert payload == before

    def test_odd_but_good(self, redis_client):
        push({"class": "x", "queue": "größe:2", "at": None, "jid": None, "tags": ("a",)})
        (payload,) = listed(redis_client, "cogworker:queue:größe:2")
        assert payload["tags"] == ["a"]
        assert "at" not in payload


# -- a server that will not take them


class TestWrongTypes:
    @pytest.mark.parametrize("fetch", ["reliable", "basic"])
    @pytest.mark.parametrize(
        ("key", "enqueue"),
        [
            (QUEUE, lambda: Plain.perform_async(1)),
            (f"{QUEUE}:priority", lambda: Plain.set(priority=1).perform_async(1)),
            (SCHEDULE, lambda: Plain.perform_in(60, 1)),
        ],
    )
    def test_a_key_of_the_wrong_type_is_a_clear_error_and_its_neighbours_take_jobs(
        self, redis_client, key, enqueue, fetch
    ):
        redis_client.set(key, "not ours")
        with override_settings(COGWORKER_FETCH=fetch):
            with pytest.raises(PushError, match="WRONGTYPE") as caught:
                enqueue()
            assert not caught.value.ambiguous
            assert len(caught.value.refused) == 1
            assert Ranked.perform_async(1)
            assert Ranked.set(priority=1).perform_async(1)
        assert redis_client.get(key) == b"not ours"
        assert redis_client.llen("cogworker:queue:ranked") == 1

    @pytest.mark.parametrize("key", [f"{QUEUE}:tokens", "cogworker:queues"])
    def test_what_only_serves_promptness_or_display_stops_no_push(self, redis_client, key):
        redis_client.hset(key, "a", "b")
        assert Plain.perform_async(1)
        assert redis_client.llen(QUEUE) == 1

    def test_in_bulk_the_others_are_enqueued_and_the_error_says_which(self, redis_client):
        """A refused job in the first slice does not hold up the later slices either."""
        redis_client.set("cogworker:queue:bad", "not ours")
        payloads = [
            {"class": "x", "jid": f"{n}", "queue": "bad" if n % 1000 == 7 else "good"}
            for n in range(3000)
        ]
        with pytest.raises(PushError, match="3 of 3000 jobs were refused.*WRONGTYPE") as caught:
            push_bulk(payloads)
        assert caught.value.refused == ["7", "1007", "2007"]
        assert len(caught.value.accepted) == 2997
        assert not {"7", "1007", "2007"} & set(caught.value.accepted)
        assert redis_client.llen("cogworker:queue:good") == 2997


@pytest.fixture
def own_server(make_redis_server):
    """A server that may be mistreated, as the one to use."""
    server = make_redis_server()
    with override_settings(COGWORKER_REDIS=server.url):
        yield server


class TestTroubledServer:
    @pytest.fixture(autouse=True)
    def _less_patience(self, monkeypatch):
        monkeypatch.setattr("django_cogworker.client.transport.PATIENCE", 0.3)

    def test_out_of_memory_is_said_at_once(self, make_redis_server, monkeypatch):
        monkeypatch.setattr("django_cogworker.client.transport.PATIENCE", 60.0)
        server = make_redis_server(maxmemory_policy="noeviction")
        with override_settings(COGWORKER_REDIS=server.url):
            assert Plain.perform_async(1)
            client = server.client()
            client.config_set("maxmemory", "1")
            for enqueue in (
                lambda: Plain.perform_async(2),
                lambda: Plain.set(priority=2).perform_async(2),
                lambda: Plain.perform_in(60, 2),
                lambda: Plain.perform_bulk([(2,), (3,)]),
            ):
                with pytest.raises(PushError, match="OOM|maxmemory") as caught:
                    enqueue()
                assert not caught.value.ambiguous
                assert caught.value.accepted == []
            assert client.llen(QUEUE) == 1
            client.config_set("maxmemory", "0")
            assert Plain.perform_async(3)
            assert [each["args"] for each in listed(client)] == [[1], [3]]

    def test_a_read_only_replica_is_named_and_used_again_when_it_is_promoted(
        self, make_redis_server, own_server
    ):
        primary = make_redis_server()
        client = own_server.client()
        client.replicaof("127.0.0.1", primary.port)
        with pytest.raises(PushError, match="READONLY|read.?only") as caught:
            Plain.perform_async(1)
        assert not caught.value.ambiguous
        client.replicaof("NO", "ONE")
        assert Plain.perform_async(2)
        assert [each["args"] for each in listed(client)] == [[2]]

    def test_a_server_that_is_gone(self, own_server):
        assert Plain.perform_async(1)
        own_server.stop()
        for _ in range(2):
            with pytest.raises(PushError, match="could not be enqueued") as caught:
                Plain.perform_async(2)
            assert isinstance(caught.value, CogworkerError)
        own_server.start()
        assert Plain.perform_async(3)

    def test_a_refused_connection_is_not_ambiguous(self):
        """Nothing was sent, so nothing can have arrived."""
        with override_settings(COGWORKER_REDIS="redis://127.0.0.1:1/0"):
            with pytest.raises(PushError) as caught:
                Plain.perform_async(1)
            assert not caught.value.ambiguous
            assert "all the same" not in str(caught.value)

    def test_an_embedded_server_that_cannot_start_is_not_ambiguous(self, tmp_path):
        """Nothing was sent, so nothing can have arrived."""
        broken = override_settings(
            COGWORKER_REDIS="embedded",
            COGWORKER_EMBEDDED_DIR=tmp_path / "server",
            COGWORKER_EMBEDDED_BINARY=tmp_path / "no-such-binary",
        )
        with broken:
            with pytest.raises(PushError, match="no-such-binary") as caught:
                Plain.perform_async(1)
            assert not caught.value.ambiguous

    def test_in_bulk_the_error_names_what_was_accepted_before(self, own_server):
        client = own_server.client()

        def calls() -> Iterator[tuple[int]]:
            for number in range(2500):
                if number == 2100:
                    own_server.stop()
                yield (number,)

        with pytest.raises(PushError) as caught:
            Plain.perform_bulk(calls())
        assert len(caught.value.accepted) == 2000
        assert len(caught.value.refused) == 500
        assert not set(caught.value.accepted) & set(caught.value.refused)
        client.close()

    def test_many_pushes_wait_for_an_absent_server_once(self, monkeypatch):
        """Not once a job: a request that enqueues a hundred jobs would hang for minutes."""
        waits: list[float] = []
        monkeypatch.setattr("django_cogworker.client.transport.time.sleep", waits.append)
        monkeypatch.setattr("django_cogworker.client.transport.PATIENCE", 2.0)
        clock = _Clock(waits)
        monkeypatch.setattr("django_cogworker.client.transport.time.monotonic", clock)
        with override_settings(COGWORKER_REDIS="redis://127.0.0.1:1/0"):
            for _ in range(20):
                with pytest.raises(PushError):
                    Plain.perform_async(1)
        assert 1 <= sum(waits) <= 4

    def test_wrong_credentials(self, make_redis_server):
        server = make_redis_server()
        server.client().config_set("requirepass", "right")
        wrong = server.url.replace("redis://", "redis://:wrong@")
        right = server.url.replace("redis://", "redis://:right@")
        with override_settings(COGWORKER_REDIS=wrong):
            with pytest.raises(PushError) as caught:
                Plain.perform_async(1)
            assert not caught.value.ambiguous
            assert "wrong" not in str(caught.value).replace("WRONGPASS", "")
        with override_settings(COGWORKER_REDIS=right):
            assert Plain.perform_async(1)


class _Clock:
    """Goes on only while the push sleeps."""

    def __init__(self, waits: list[float]) -> None:
        self._waits = waits

    def __call__(self) -> float:
        return 1000.0 + sum(self._waits)


def test_scripts_may_be_flushed_at_any_time(redis_client):
    for number in range(3):
        Plain.perform_async(number)
        redis_client.script_flush()
    assert redis_client.llen(QUEUE) == 3


def test_every_key_of_a_push_has_a_bound_or_a_time_to_live(redis_client):
    """Q2-12: a client leaves nothing behind that grows."""
    for number in range(200):
        Plain.perform_async(number)
        Plain.perform_in(60, number)
    lanes = redis_client.keys("cogworker:lane:*")
    assert 1 <= len(lanes) <= 2
    assert all(0 < redis_client.ttl(each) <= 900 for each in lanes)
    rest = {key.decode() for key in redis_client.keys("*")} - {each.decode() for each in lanes}
    assert rest == {
        QUEUE,
        f"{QUEUE}:tokens",
        SCHEDULE,
        "cogworker:queues",
    }
    assert redis_client.llen(f"{QUEUE}:tokens") == 1


@pytest.mark.parametrize("prefix", ["shop:", "{shop}:"])
def test_every_key_carries_the_prefix(redis_client, prefix):
    with override_settings(COGWORKER_KEY_PREFIX=prefix):
        Plain.perform_async(1)
        Plain.set(priority=1).perform_async(1)
        Plain.perform_in(1, 1)
    assert all(key.startswith(prefix.encode()) for key in redis_client.keys("*"))
