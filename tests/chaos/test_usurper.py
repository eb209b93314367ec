"""The injector itself loses nothing when it puts a wrong value in the place of a key."""

from __future__ import annotations

import pytest

from tests.chaos.usurper import restore, restore_all, usurp

PREFIX = "cogworker:"


def test_the_true_key_comes_back(redis_client):
    redis_client.zadd(PREFIX + "dead", {"a": 1})
    usurp(redis_client, "dead")
    assert redis_client.type(PREFIX + "dead") == b"string"
    restore(redis_client, "dead")
    assert redis_client.zrange(PREFIX + "dead", 0, -1, withscores=True) == [(b"a", 1.0)]
    assert redis_client.dbsize() == 1


def test_nothing_was_there(redis_client):
    usurp(redis_client, "retry")
    restore(redis_client, "retry")
    assert redis_client.dbsize() == 0


def test_a_repeat_is_harmless(redis_client):
    redis_client.zadd(PREFIX + "retry", {"a": 1})
    for _ in range(2):
        usurp(redis_client, "retry")
    for _ in range(2):
        restore(redis_client, "retry")
    assert redis_client.zrange(PREFIX + "retry", 0, -1) == [b"a"]


def test_a_registry_is_lost(redis_client):
    redis_client.sadd(PREFIX + "queues", "a")
    usurp(redis_client, "queues")
    assert redis_client.type(PREFIX + "queues") == b"string"
    restore(redis_client, "queues")
    assert redis_client.dbsize() == 0


def test_what_was_written_meanwhile_is_merged(redis_client):
    redis_client.rpush(PREFIX + "queue:low", "young", "old")
    redis_client.zadd(PREFIX + "retry", {"a": 1, "b": 1})
    redis_client.hset(PREFIX + "holders", mapping={"a": 1, "b": 1})
    redis_client.incrby(PREFIX + "stats:processed", 5)
    names = ("queue:low", "retry", "holders", "stats:processed")
    for name in names:
        usurp(redis_client, name)
        redis_client.rename(PREFIX + name, f"{PREFIX}quarantine:{name}")
    redis_client.rpush(PREFIX + "queue:low", "youngest")
    redis_client.zadd(PREFIX + "retry", {"b": 2, "c": 2})
    redis_client.hset(PREFIX + "holders", mapping={"b": 2, "c": 2})
    redis_client.incrby(PREFIX + "stats:processed", 2)
    restore_all(redis_client, names)
    assert redis_client.lrange(PREFIX + "queue:low", 0, -1) == [b"youngest", b"young", b"old"]
    assert dict(redis_client.zrange(PREFIX + "retry", 0, -1, withscores=True)) == {
        b"a": 1,
        b"b": 2,
        b"c": 2,
    }
    assert redis_client.hgetall(PREFIX + "holders") == {b"a": b"1", b"b": b"2", b"c": b"2"}
    assert redis_client.get(PREFIX + "stats:processed") == b"7"
    assert redis_client.dbsize() == 4


@pytest.mark.parametrize("name", ["queue:low", "stats:processed"])
def test_a_quarantined_value_of_somebody_else_stays(redis_client, name):
    redis_client.set(f"{PREFIX}quarantine:{name}", "not ours")
    restore_all(redis_client, [name])
    assert redis_client.dbsize() == 1
