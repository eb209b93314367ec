"""The exchange script: settle and fetch in one step, by tickets that make a repeat harmless."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest
import redis

from django_cogworker.store.scripts import script
from django_cogworker.store.store import Store, get_store
from django_cogworker.store.values import (
    Effect,
    ExchangeReply,
    ExchangeRequest,
    Outgoing,
    Settlement,
)
from tests.support.proxy import RedisProxy
from tests.support.waiting import wait_until

ME = "host:1:aaaaaaaaaaaa"


@pytest.fixture
def store(redis_url: str) -> Store:
    return get_store()


def payload(name: str, **fields: Any) -> bytes:
    return json.dumps({"class": "x", "jid": name, "args": [], **fields}).encode()


def push(store: Store, *names: str, queue: str = "default", priority: int = 0) -> None:
    jobs = [Outgoing(each, queue, payload(each), priority) for each in names]
    push.number += 1  # type: ignore[attr-defined]
    verdicts = store.push("lane", push.number, jobs)  # type: ignore[attr-defined]
    assert verdicts == [None] * len(jobs)


push.number = 0  # type: ignore[attr-defined]


def exchange(
    store: Store,
    first: int = 1,
    wanted: int = 0,
    queues: Sequence[str] = ("default",),
    acknowledged: Sequence[int] = (),
    settlements: Sequence[Settlement] = (),
    identity: str = ME,
) -> ExchangeReply:
    return store.exchange(
        ExchangeRequest(identity, first, wanted, queues, acknowledged, settlements)
    )


def fetched(reply: ExchangeReply) -> list[str]:
    return [json.loads(each.payload)["jid"] for each in reply.jobs]


def queued(store: Store, queue: str = "default") -> list[str]:
    """What waits on the list, the next one to run first."""
    raw = store.client.lrange(store.keys.queue(queue).jobs, 0, -1)
    return [json.loads(each)["jid"] for each in reversed(raw)]


def held(store: Store, identity: str = ME) -> dict[Any, Any]:
    return dict(store.client.hgetall(store.keys.workers(identity)))


def tokens(store: Store, queue: str = "default") -> int:
    return int(store.client.llen(store.keys.queue(queue).tokens))


def take_tokens(store: Store, *queues: str) -> None:
    store.client.delete(*(store.keys.queue(each).tokens for each in queues or ("default",)))


# -- fetch


def test_a_fetched_job_is_off_its_queue_and_in_progress_until_it_is_acknowledged(store):
    """E36, RQ-2"""
    push(store, "a")
    reply = exchange(store, 1, 1)
    assert fetched(reply) == ["a"]
    assert queued(store) == []
    (value,) = held(store).values()
    assert value.partition(b"\n")[2] == payload("a")
    assert store.client.hget(store.keys.holders, ME) == b"2"

    exchange(store, acknowledged=[1])
    assert held(store) == {}
    assert store.client.get(store.keys.processed) == b"1"


def test_jobs_are_fetched_in_the_order_of_their_push(store):
    push(store, *"abcde")
    assert fetched(exchange(store, 1, 3)) == ["a", "b", "c"]
    assert fetched(exchange(store, 4, 3)) == ["d", "e"]


def test_higher_priorities_come_first_and_lower_ones_last(store):
    push(store, "n1", "n2")
    push(store, "low1", "low2", priority=-5)
    push(store, "lowest", priority=-100)
    push(store, "high1", "high2", priority=5)
    push(store, "highest", priority=100)
    order = ["highest", "high1", "high2", "n1", "n2", "low1", "low2", "lowest"]
    got: list[str] = []
    for first in range(1, 9):
        got += fetched(exchange(store, first, 1))
    assert got == order

    push(store, "n")
    push(store, "l", priority=-1)
    push(store, "h", priority=1)
    assert fetched(exchange(store, 9, 10)) == ["h", "n", "l"]
    assert store.client.exists(store.keys.queue("default").priority) == 0


def test_jobs_without_priority_pay_nothing_for_those_that_have_one(store):
    """However many are fetched, their queue's sorted set is looked at as often, and never into."""

    def sorted_set_commands(first: int, number: int) -> dict[str, int]:
        push(store, *(f"{first}-{each}" for each in range(number)))
        client: Any = store.client
        client.config_resetstat()
        assert len(fetched(exchange(store, first, number))) == number
        ran = client.info("commandstats")
        return {name: each["calls"] for name, each in ran.items() if name.startswith("cmdstat_z")}

    few, many = sorted_set_commands(1, 5), sorted_set_commands(6, 50)
    assert few == many
    assert "cmdstat_zrangebyscore" not in few


def test_a_job_given_back_is_the_next_of_its_priority(store):
    push(store, "h1", "h2", "h3", priority=7)
    push(store, "n1", "n2", "n3")
    reply = exchange(store, 1, 4)
    assert fetched(reply) == ["h1", "h2", "h3", "n1"]
    back = [
        Settlement(each.ticket, "front", each.payload, queue="default", priority=priority)
        for each, priority in zip(reversed(reply.jobs), (0, 7, 7, 7), strict=True)
    ]
    assert list(exchange(store, 5, settlements=back).verdicts) == [1] * 4
    assert fetched(exchange(store, 5, 10)) == ["h1", "h2", "h3", "n1", "n2", "n3"]


def test_a_paused_queue_is_left_alone_and_its_neighbour_is_read(store):
    """E37"""
    push(store, "a")
    push(store, "b", queue="low")
    assert store.pause("default") is True
    assert store.pause("default") is False
    assert fetched(exchange(store, 1, 5, ["default", "low"])) == ["b"]
    assert queued(store) == ["a"]
    assert store.resume("default") is True
    assert store.resume("default") is False
    assert fetched(exchange(store, 2, 5, ["default", "low"])) == ["a"]


def test_the_queues_are_tried_in_the_order_of_the_request(store):
    for queue in "xyz":
        push(store, f"{queue}1", f"{queue}2", queue=queue)
    assert fetched(exchange(store, 1, 5, ["z", "x", "y"])) == ["z1", "z2", "x1", "x2", "y1"]


def test_a_queue_of_the_wrong_type_costs_its_neighbours_nothing(store):
    store.client.set(store.keys.queue("bad").jobs, "text")
    store.client.set(store.keys.queue("worse").priority, "text")
    push(store, "a")
    push(store, "w", queue="worse")
    reply = exchange(store, 1, 5, ["bad", "worse", "default"])
    assert fetched(reply) == ["w", "a"]
    assert len(reply.errors) == 2
    assert reply.errors[0].startswith("bad: WRONGTYPE")
    assert reply.errors[1].startswith("worse: WRONGTYPE")


def test_paused_queues_of_the_wrong_type_do_not_stop_the_fetch(store):
    push(store, "a")
    store.client.set(store.keys.paused, "text")
    reply = exchange(store, 1, 5)
    assert fetched(reply) == ["a"]
    assert any("WRONGTYPE" in each for each in reply.errors)


def test_counters_of_the_wrong_type_do_not_stop_anything(store):
    push(store, "a", "b")
    store.client.lpush(store.keys.processed, "x")
    store.client.lpush(store.keys.failed, "x")
    exchange(store, 1, 2)
    failed = Settlement(2, "retry", payload("b"), 10, counter="failed")
    reply = exchange(store, 3, acknowledged=[1], settlements=[failed])
    assert list(reply.verdicts) == [1]
    assert held(store) == {}


def test_due_time_of_the_next_scheduled_job_comes_with_each_reply(store):
    assert exchange(store).due_ms == -1
    now = store.client.time()[0]
    store.client.zadd(store.keys.schedule, {"x": now + 100})
    assert 90_000 < exchange(store).due_ms <= 101_000
    store.client.zadd(store.keys.retry, {"y": now - 5})
    assert exchange(store).due_ms == 0


def test_a_thousand_jobs_are_fetched_and_acknowledged_in_few_calls(store):
    names = [f"j{number}" for number in range(1000)]
    push(store, *names)
    got: list[str] = []
    for first in range(1, 1001, 250):
        got += fetched(exchange(store, first, 250))
    assert got == names
    exchange(store, acknowledged=list(range(1, 501)))
    exchange(store, acknowledged=list(range(501, 1001)))
    assert held(store) == {}
    assert store.client.get(store.keys.processed) == b"1000"


# -- tickets


def test_a_repeated_fetch_returns_what_its_tickets_hold_already(store):
    push(store, *"abcd")
    first = exchange(store, 1, 2)
    again = exchange(store, 1, 2)
    assert again.jobs == first.jobs
    assert again.next_ticket == 3
    assert queued(store) == ["c", "d"]


def test_a_repeat_that_wants_more_or_less_strands_nothing(store):
    push(store, *"abcde")
    exchange(store, 1, 3)  # its reply was lost
    less = exchange(store, 1, 2)
    assert (fetched(less), less.next_ticket) == (["a", "b"], 3)
    more = exchange(store, 3, 9)
    assert (fetched(more), more.next_ticket) == (["c"], 4)
    assert fetched(exchange(store, 4, 9)) == ["d", "e"]


def test_a_late_packet_of_a_request_that_was_repeated_takes_nothing_from_the_queue(store):
    push(store, *"abcd")
    assert fetched(exchange(store, 1, 2)) == ["a", "b"]
    exchange(store, 3, acknowledged=[1])
    late = exchange(store, 1, 2)
    assert fetched(late) == ["b"]
    assert queued(store) == ["c", "d"]
    assert len(held(store)) == 1


def test_what_a_late_packet_took_is_handed_out_with_the_next_fetch(store):
    assert fetched(exchange(store, 1, 2)) == []  # overtook the one that arrives only now
    push(store, *"ab")
    exchange(store, 1, 1)  # nobody reads this reply
    assert fetched(exchange(store, 1, 2)) == ["a"]
    assert fetched(exchange(store, 2, 2)) == ["b"]


def test_a_reply_lost_on_the_way_changes_nothing(store, redis_url, make_proxy):
    proxy: RedisProxy = make_proxy(redis_url)
    push(store, *"abc")
    client = redis.Redis.from_url(proxy.url, protocol=2)
    before, store._verbs._client = store._verbs._client, client
    try:
        script("exchange").run(store.client, ["k"] * 11, [ME, 1, 0, 0, 1, 1, "", "", 0])
        lost = proxy.lose_reply(b"EVALSHA")
        with pytest.raises(redis.ConnectionError):
            exchange(store, 1, 2)
        assert lost.wait()
        wait_until(lambda: len(held(store)) == 2)
        assert fetched(exchange(store, 1, 2)) == ["a", "b"]

        lost = proxy.lose_reply(b"EVALSHA")
        with pytest.raises(redis.ConnectionError):
            exchange(store, 3, 0, acknowledged=[1, 2])
        assert lost.wait()
        exchange(store, 3, 0, acknowledged=[1, 2])
        assert store.client.get(store.keys.processed) == b"2"
    finally:
        store._verbs._client = before
        client.close()


def test_repeated_settlements_write_and_count_once(store):
    """E54: what is no longer in progress stays where it is."""
    push(store, "a", "b")
    exchange(store, 1, 2)
    items = [
        Settlement(
            1, "dead", payload("a"), counter="failed", effects=(Effect("hincrby", "h", ("n", 1)),)
        ),
        Settlement(2, "front", payload("b"), queue="default"),
    ]
    assert list(exchange(store, 3, settlements=items).verdicts) == [1, 1]
    assert list(exchange(store, 3, settlements=items).verdicts) == [0, 0]
    assert queued(store) == ["b"]
    assert store.client.get(store.keys.failed) == b"1"
    assert store.client.hget("h", "n") == b"1"


def test_a_tombstone_refuses_everything(store):
    push(store, "a", "b")
    exchange(store, 1, 1)
    store.client.set(store.keys.tombstone(ME), "1", ex=10)
    reply = exchange(store, 2, 1, acknowledged=[1])
    assert reply.buried
    assert reply.jobs == []
    assert queued(store) == ["b"]
    assert len(held(store)) == 1
    assert store.client.get(store.keys.processed) is None
    assert fetched(exchange(store, 2, 1, identity="host:1:bbbbbbbbbbbb")) == ["b"]


def test_a_late_packet_of_a_worker_that_left_strands_nothing(store):
    push(store, "a")
    assert store.leave(ME) == 0
    assert exchange(store, 1, 1).jobs == []
    assert queued(store) == ["a"]


def test_two_workers_with_the_same_tickets_do_not_meet(store):
    push(store, *"abcd")
    other = "host:2:bbbbbbbbbbbb"
    assert fetched(exchange(store, 1, 2)) == ["a", "b"]
    assert fetched(exchange(store, 1, 2, identity=other)) == ["c", "d"]
    exchange(store, 3, acknowledged=[1, 2])
    assert len(held(store, other)) == 2


def test_many_fetchers_at_once_get_each_job_once(store):
    names = [f"j{number}" for number in range(600)]
    push(store, *names)
    got: list[str] = []
    lock = threading.Lock()

    def fetch(number: int) -> None:
        first, mine = 1, []
        while reply := fetched(exchange(store, first, 7, identity=f"host:{number}:x")):
            first += len(reply)
            mine += reply
        with lock:
            got.extend(mine)

    threads = [threading.Thread(target=fetch, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(got) == sorted(names)


# -- settlements


def test_each_disposition_brings_the_job_to_its_place(store):
    names = ["acked", "schedule", "retry", "dead", "front"]
    push(store, *names)
    exchange(store, 1, 5)
    now = store.client.time()[0]
    items = [
        Settlement(1, "ack"),
        Settlement(2, "schedule", payload("schedule"), 30),
        Settlement(3, "retry", payload("retry"), 60, counter="failed"),
        Settlement(4, "dead", payload("dead"), counter="failed"),
        Settlement(5, "front", payload("front"), queue="default"),
    ]
    assert list(exchange(store, 6, settlements=items).verdicts) == [1] * 5
    assert held(store) == {}

    def score(key: str, name: str) -> float:
        return float(store.client.zscore(key, payload(name))) - now

    assert 29 < score(store.keys.schedule, "schedule") < 33
    assert 59 < score(store.keys.retry, "retry") < 63
    assert -1 < score(store.keys.dead, "dead") < 3
    assert queued(store) == ["front"]
    assert store.client.get(store.keys.failed) == b"2"
    assert store.client.get(store.keys.processed) is None


@pytest.mark.parametrize("bad", ["schedule", "retry", "dead", "front"])
def test_a_key_of_the_wrong_type_keeps_its_job_in_progress_and_its_neighbours_go_on(store, bad):
    """E53"""
    push(store, *"abcde")
    exchange(store, 1, 5)
    items = [
        Settlement(1, "schedule", payload("a"), 30),
        Settlement(2, "retry", payload("b"), 30),
        Settlement(3, "dead", payload("c")),
        Settlement(4, "front", payload("d"), queue="default"),
        Settlement(5, "ack", counter="processed"),
    ]
    keys = store.keys
    key = {
        "schedule": keys.schedule,
        "retry": keys.retry,
        "dead": keys.dead,
        "front": keys.queue("default").jobs,
    }[bad]
    store.client.set(key, "text")
    verdicts = exchange(store, 6, settlements=items).verdicts
    for item, verdict in zip(items, verdicts, strict=True):
        if item.disposition == bad:
            assert isinstance(verdict, str)
            assert "WRONGTYPE" in verdict
            noted = [b"=%d" % item.ticket] if bad in ("retry", "dead") else []
            assert list(held(store)) == [b"%d" % item.ticket, *noted]
        else:
            assert verdict == 1
    store.client.delete(key)
    again = [each for each in items if each.disposition == bad]
    assert list(exchange(store, 6, settlements=again).verdicts) == [1]
    assert held(store) == {}


def test_effects_come_with_the_move_and_a_broken_one_does_not_stop_it(store):
    push(store, "a", "b", "c")
    exchange(store, 1, 3)
    client = store.client
    client.set("wrong", "text")
    client.set("mine", "owner")
    client.set("theirs", "somebody")
    client.set("gone", "x")
    client.set("kept", "owner")
    effects = (
        Effect("hincrby", "wrong", ("n", 1)),
        Effect("hincrby", "hash", ("n", 2)),
        Effect("hset", "hash", ("field", "value")),
        *(Effect("append", "list", (str(number), 3)) for number in range(5)),
        Effect("expire", "list", (100,)),
        Effect("delete", "gone"),
        Effect("delete_if_owner", "mine", ("owner",)),
        Effect("delete_if_owner", "theirs", ("owner",)),
        Effect("expire_if_owner", "kept", ("owner", 100)),
    )
    reply = exchange(store, 4, settlements=[Settlement(1, "ack", effects=effects)])
    assert list(reply.verdicts) == [1]
    assert any("WRONGTYPE" in each for each in reply.errors)
    assert client.hgetall("hash") == {b"n": b"2", b"field": b"value"}
    assert client.lrange("list", 0, -1) == [b"2", b"3", b"4"]
    assert 0 < client.ttl("list") <= 100
    assert client.exists("gone", "mine") == 0
    assert client.get("theirs") == b"somebody"
    assert 0 < client.ttl("kept") <= 100


def test_effects_belong_to_tickets_that_are_really_held(store):
    effects = (Effect("hincrby", "hash", ("n", 1)),)
    reply = exchange(
        store, settlements=[Settlement(77, "ack", effects=effects, counter="processed")]
    )
    assert list(reply.verdicts) == [0]
    assert store.client.exists("hash") == 0
    assert store.client.get(store.keys.processed) is None


def test_the_start_mark_of_an_at_most_once_job_goes_with_it(store):
    push(store, "a", "b")
    exchange(store, 1, 2)
    assert store.mark_started(ME, 1) is True
    assert store.mark_started(ME, 9) is False
    assert set(held(store)) == {b"1", b"2", b"!1"}
    exchange(store, 3, settlements=[Settlement(1, "ack", counter="processed")], acknowledged=[2])
    assert held(store) == {}
    assert store.leave(ME) == 0


def test_the_dead_set_is_bounded_by_count_and_by_age(redis_url, settings):
    settings.COGWORKER_DEAD_MAX_JOBS = 5
    settings.COGWORKER_DEAD_MAX_AGE = 1000
    store = get_store()
    now = store.client.time()[0]
    store.client.zadd(store.keys.dead, {"ancient": now - 2000, "old": now - 500})
    names = [f"j{number}" for number in range(7)]
    push(store, *names)
    exchange(store, 1, 7)
    exchange(store, 8, settlements=[Settlement(1, "dead", payload("j0"))])
    assert store.client.zrange(store.keys.dead, 0, -1) == [b"old", payload("j0")]
    items = [Settlement(at, "dead", payload(f"j{at - 1}")) for at in range(2, 8)]
    exchange(store, 8, settlements=items)
    kept = store.client.zrange(store.keys.dead, 0, -1)
    assert sorted(kept) == sorted(payload(each) for each in names[2:])


# -- tokens


def test_a_push_leaves_one_token_however_many_jobs_it_brings(store):
    push(store, *"abc")
    push(store, "d")
    push(store, "e", priority=3)
    assert tokens(store) == 1


def test_one_token_wakes_one_worker(store):
    woken: list[bool] = []
    threads = [
        threading.Thread(target=lambda: woken.append(store.wait_for_token(["default"])))
        for _ in range(2)
    ]
    for each in threads:
        each.start()
    wait_until(lambda: store.client.info("clients")["blocked_clients"] == 2)
    push(store, "a")
    wait_until(lambda: woken == [True])
    for each in threads:
        each.join()
    assert woken == [True, False]


def test_a_fetch_that_leaves_jobs_puts_a_token_back(store):
    push(store, *"abc")
    take_tokens(store)
    exchange(store, 1, 2)
    assert tokens(store) == 1
    take_tokens(store)
    exchange(store, 3, 2)
    assert tokens(store) == 0


def test_a_fetch_that_leaves_only_prioritised_jobs_puts_a_token_back(store):
    push(store, "h1", "h2", priority=1)
    take_tokens(store)
    exchange(store, 1, 1)
    assert tokens(store) == 1


def test_a_look_without_wishes_puts_the_token_back(store):
    push(store, "a")
    take_tokens(store)
    exchange(store, 1, 0)
    assert tokens(store) == 1


def test_each_queue_with_jobs_left_gets_its_token(store):
    push(store, "x1", "x2", queue="x")
    push(store, "y1", queue="y")
    take_tokens(store, "x", "y")
    exchange(store, 1, 1, ["x", "y"])
    assert (tokens(store, "x"), tokens(store, "y")) == (1, 1)


def test_a_repeat_that_leaves_jobs_leaves_the_token_too(store):
    push(store, *"abc")
    take_tokens(store)
    exchange(store, 1, 1)
    take_tokens(store)  # whoever had it died
    exchange(store, 1, 1)
    assert tokens(store) == 1


def test_giving_back_and_resuming_leave_a_token(store):
    push(store, "a")
    exchange(store, 1, 1)
    take_tokens(store)
    exchange(store, 2, settlements=[Settlement(1, "front", payload("a"), queue="default")])
    assert tokens(store) == 1
    take_tokens(store)
    store.pause("default")
    store.resume("default")
    assert tokens(store) == 1


def test_a_token_list_of_the_wrong_type_costs_only_promptness(store):
    store.client.set(store.keys.queue("default").tokens, "text")
    push(store, *"abc")
    assert fetched(exchange(store, 1, 2)) == ["a", "b"]


# -- scripts


def test_a_flushed_script_cache_is_filled_again(store):
    """E42"""
    push(store, "a")
    store.client.script_flush()
    assert fetched(exchange(store, 1, 1)) == ["a"]
    assert store.client.script_exists(script("exchange").sha) == [True]


@pytest.mark.parametrize(
    "name",
    ["exchange", "push", "due", "graduate", "beat", "leave", "signal", "resume", "mark_started"],
)
def test_every_script_says_what_it_is_for(name):
    text = script(name).text
    assert text.startswith(f"-- {name}.lua: ")
    assert "-- KEYS " in text
    assert "-- ARGV " in text
    assert "-- Returns " in text
