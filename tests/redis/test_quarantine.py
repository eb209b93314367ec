"""Keys of the wrong type are found and put out of the way, with all that they hold."""

from __future__ import annotations

from typing import Any

import pytest

from django_cogworker.store.keys import Keys
from django_cogworker.store.quarantine import MOST_COPIES, MOST_IN_ALL, TTL, Misplaced, Quarantine
from django_cogworker.store.store import get_store

KEYS = Keys("cogworker:")
ME = "host:1:aaaaaaaaaaaa"


@pytest.fixture
def quarantine(redis_url: str) -> Quarantine:
    return get_store().quarantine


def put_all_away(quarantine: Quarantine, *queues: str) -> list[str]:
    found = quarantine.look(queues, ME, "h")
    return [name for each in found if (name := quarantine.put_away(each))]


def copies_of(client: Any, key: str) -> list[str]:
    return sorted(each.decode() for each in client.scan_iter(f"{KEYS.quarantine(key)}:*"))


def test_l174_only_keys_of_the_wrong_type_are_renamed_with_all_they_hold(quarantine, redis_client):
    client: Any = redis_client
    client.rpush(KEYS.dead, "a", "b")
    client.set(KEYS.queue("listed").jobs, "text")
    client.sadd(KEYS.queues, "listed", "good")
    client.rpush(KEYS.queue("good").jobs, "job")
    client.zadd(KEYS.retry, {"job": 1})
    client.set("cogworker-of-somebody-else", "x")
    found = {each.key: (each.wanted, each.found) for each in quarantine.look([], ME, "h")}
    assert found == {
        KEYS.dead: ("zset", "list"),
        KEYS.queue("listed").jobs: ("list", "string"),
    }
    names = put_all_away(quarantine)
    assert len(names) == 2
    assert quarantine.look([], ME, "h") == []
    (dead,) = copies_of(client, KEYS.dead)
    assert client.lrange(dead, 0, -1) == [b"a", b"b"]
    assert TTL - 60 < client.ttl(dead) <= TTL
    assert 0 < client.ttl(KEYS.quarantined) <= TTL
    assert client.llen(KEYS.queue("good").jobs) == 1
    assert client.zcard(KEYS.retry) == 1
    assert client.exists(KEYS.dead, KEYS.queue("listed").jobs) == 0


def test_every_known_key_is_looked_at(quarantine, redis_client):
    """L178 and its kind: whatever a verb needs, of the worker, its queues and all holders."""
    client: Any = redis_client
    client.hset(KEYS.holders, "host:2:bbbbbbbbbbbb", 1)
    queue = KEYS.queue("mine")
    needed = [
        KEYS.schedule, KEYS.retry, KEYS.dead, KEYS.beats, KEYS.losses, KEYS.quarantined,
        KEYS.paused, KEYS.processes, KEYS.host("h"), KEYS.members, KEYS.due_tokens,
        queue.jobs, queue.priority, queue.tokens, KEYS.workers(ME), KEYS.process(ME),
        KEYS.workers("host:2:bbbbbbbbbbbb"),
    ]  # fmt: skip
    for each in needed:
        client.set(each, "wrong")
    for each in (KEYS.fleet_since, KEYS.processed, KEYS.failed, KEYS.tombstone(ME)):
        client.rpush(each, "wrong")
        needed.append(each)
    assert {each.key for each in quarantine.look(["mine"], ME, "h")} == set(needed)


def test_a_registry_of_the_wrong_type_has_no_members_and_goes_itself(quarantine, redis_client):
    client: Any = redis_client
    client.set(KEYS.queues, "wrong")
    client.set(KEYS.holders, "wrong")
    assert len(put_all_away(quarantine, "mine")) == 2
    client.sadd(KEYS.queues, "again")


def test_a_key_that_was_put_right_meanwhile_is_left_alone(quarantine, redis_client):
    client: Any = redis_client
    client.zadd(KEYS.dead, {"job": 1})
    assert quarantine.put_away(Misplaced(KEYS.dead, "zset", "list")) is None
    assert client.zcard(KEYS.dead) == 1
    assert copies_of(client, KEYS.dead) == []


def test_l176_copies_of_one_instant_are_told_apart_and_the_newest_five_stay(
    quarantine, redis_client
):
    client: Any = redis_client
    for number in range(2):
        client.rpush(KEYS.dead, number)
        put_all_away(quarantine)
    assert len(copies_of(client, KEYS.dead)) == 2
    for number in range(2, MOST_COPIES + 4):
        client.rpush(KEYS.dead, number)
        put_all_away(quarantine)
    kept = copies_of(client, KEYS.dead)
    assert len(kept) == MOST_COPIES
    held = sorted(client.lrange(each, 0, -1)[0] for each in kept)
    assert held == [b"4", b"5", b"6", b"7", b"8"]
    assert client.zcard(KEYS.quarantined) == MOST_COPIES


def test_l177_one_key_s_copies_do_not_count_for_another_with_the_same_beginning(
    quarantine, redis_client
):
    client: Any = redis_client
    short, long = KEYS.queue("a").jobs, KEYS.queue("a:b").jobs
    for _ in range(MOST_COPIES + 2):
        client.set(long, "x")
        put_all_away(quarantine, "a:b")
    client.set(short, "x")
    put_all_away(quarantine, "a")
    assert len([each for each in copies_of(client, short) if long not in each]) == 1
    assert len(copies_of(client, long)) == MOST_COPIES


def test_copies_are_bounded_in_all(quarantine, redis_client):
    client: Any = redis_client
    client.zadd(KEYS.quarantined, {f"cogworker:quarantine:k{n}:1:a": n for n in range(MOST_IN_ALL)})
    client.set("cogworker:quarantine:k0:1:a", "oldest")
    client.set(KEYS.dead, "x")
    put_all_away(quarantine)
    assert client.zcard(KEYS.quarantined) == MOST_IN_ALL
    assert client.exists("cogworker:quarantine:k0:1:a") == 0
