"""What is left in Redis is seen: jobs that nobody moves, keys that nobody owns."""

from __future__ import annotations

import json

import pytest

from tests.chaos import aftermath
from tests.chaos.aftermath import KEYS, drain, graves, leftovers, waiting


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aftermath, "STANDSTILL", 0.2)


def lay(client, place: str) -> None:
    """A job, there."""
    if place == "in progress":
        client.hset(KEYS.workers("host:1:aa"), "1", "0 default\n{}")
    elif place in ("schedule", "retry"):
        client.zadd(KEYS.prefix + place, {"{}": 1})
    elif place == "low":
        client.zadd(KEYS.queue(place).priority, {"{}": 1})
    else:
        client.lpush(KEYS.queue(place).jobs, "{}")


@pytest.mark.parametrize("place", ["in progress", "schedule", "retry", "default", "low"])
def test_a_standstill_is_told(redis_client, impatient, place):
    lay(redis_client, place)
    assert waiting(redis_client) == {place: 1}
    assert drain(redis_client, lambda: None, lambda: 0) == f"1 in {place}"


def test_nothing_waits(redis_client, impatient):
    assert drain(redis_client, lambda: None, lambda: 0) == ""


def test_as_long_as_something_moves_there_is_no_standstill(redis_client, impatient):
    lay(redis_client, "retry")
    runs = iter(range(1000))

    def size() -> int:
        now = next(runs)
        if now == 5:
            redis_client.delete(KEYS.retry)
        return now

    assert drain(redis_client, lambda: None, size) == ""


def test_keys_without_owner_are_found(redis_client):
    redis_client.set(KEYS.processed, 1)
    redis_client.set("cogworker:lane:x", 1, ex=900)
    redis_client.rpush(KEYS.queue("low").tokens, "1")
    redis_client.zadd(KEYS.dead, {"{}": 1})
    assert list(leftovers(redis_client)) == []
    redis_client.rpush(KEYS.queue("default").tokens, "1", "1")
    redis_client.hset(KEYS.workers("host:1:aa"), "1", "x")
    redis_client.hset(KEYS.holders, "host:1:aa", "2")
    redis_client.set("cogworker:lock", 1)
    assert sorted(each.split(" ")[0] for each in leftovers(redis_client)) == [
        "cogworker:holders",
        "cogworker:lock",
        "cogworker:queue:default:tokens",
        "cogworker:workers:host:1:aa",
    ]


def test_the_dead_are_read(redis_client):
    payload = {"args": ["p1", 0], "error_class": "a.B", "error_message": "oh"}
    redis_client.zadd(KEYS.dead, {json.dumps(payload): 1})
    (grave,) = graves(redis_client)
    assert (grave.name, grave.error, grave.message) == ("p1", "a.B", "oh")
