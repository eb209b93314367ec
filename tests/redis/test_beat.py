"""The beat: what is broken beside the presence costs only itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis

from django_cogworker.store.errors import is_unavailable
from django_cogworker.store.store import Store, get_store
from django_cogworker.store.values import Beat, BeatReply

ME = "host:1:aaaaaaaaaaaa"


@pytest.fixture
def store(redis_url: str) -> Store:
    return get_store()


def beat(store: Store) -> BeatReply:
    return store.beat(Beat(ME, "{}", 0, False, ["default", "low"], "{}", "somehost"))


REGISTRIES = ["processes", "beats", "fleet_since", "queues", "members", "host", "signal"]


def key_of(store: Store, name: str) -> str:
    member: Any = getattr(store.keys, name)
    if isinstance(member, str):
        return member
    key: str = member("somehost" if name == "host" else ME)
    return key


@pytest.mark.parametrize("broken", REGISTRIES)
def test_a_registry_of_the_wrong_type_costs_the_beat_only_itself(store, broken):
    """12.2: one such key must not end the beats, and with them the life, of a whole fleet."""
    key = key_of(store, broken)
    client: Any = store.client
    client.xadd(key, {"x": "1"})
    reply = beat(store)
    assert reply.time > 0
    # The age of the fleet is simply written anew, and a command of the wrong type is none.
    healed = {"fleet_since": 0, "signal": 0}
    assert bool(reply.errors) is (broken not in healed)
    assert all("WRONGTYPE" in each for each in reply.errors)
    assert client.hget(store.keys.process(ME), "busy") == b"0"
    for name in REGISTRIES:
        if name not in (broken, "signal"):
            assert client.exists(key_of(store, name)), name
    client.delete(key)
    assert beat(store).errors == []
    assert client.zscore(store.keys.beats, ME) is not None


def test_j150_each_queue_of_a_worker_is_listed_also_an_empty_one(store):
    """J150"""
    beat(store)
    assert store.client.smembers(store.keys.queues) == {b"default", b"low"}


def test_a_presence_of_the_wrong_type_is_an_error_of_the_beat(store):
    """The one write that a beat cannot do without."""
    store.client.set(store.keys.process(ME), "text")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        beat(store)


@pytest.mark.parametrize(
    ("reply", "passing"),
    [
        ("READONLY You can't write against a read only replica.", True),
        ("LOADING Redis is loading the dataset in memory", True),
        ("MASTERDOWN Link with MASTER is down", True),
        ("CLUSTERDOWN The cluster is down", True),
        ("NOREPLICAS Not enough good replicas to write.", True),
        ("TRYAGAIN Multiple keys request during rehashing of slot", True),
        ("BUSY Redis is busy running a script.", True),
        ("MISCONF Errors writing to the AOF file", True),
        ("OOM command not allowed when used memory > 'maxmemory'.", True),
        ("ERR Error running script (call to f_1): @user_script:1: -READONLY no", True),
        ("BUSYKEY Target key name already exists.", False),
        ("BUSYGROUP Consumer Group name already exists", False),
        ("WRONGTYPE Operation against a key", False),
        ("ERR syntax error", False),
    ],
)
def test_sk5_words_of_a_server_that_cannot_serve_now(reply, passing):
    """SK-5: these are waited out as a lost connection is; all others are told in full."""
    assert is_unavailable(redis.ResponseError(reply)) is passing


def test_sk5_a_server_without_enough_replicas_is_waited_for(make_redis_server, settings):
    """SK-5, with a real server: its refusal comes out of a script as what it is."""
    server = make_redis_server(min_replicas_to_write="1")
    settings.COGWORKER_REDIS = server.url
    with pytest.raises(redis.RedisError) as caught:
        beat(get_store())
    assert is_unavailable(caught.value)
    server.client().config_set("min-replicas-to-write", "0")
    assert beat(get_store()).errors == []


def test_what_a_worker_says_of_itself_is_json(store):
    store.beat(Beat(ME, json.dumps({"pid": 1}), 2, True, [], "", ""))
    assert store.client.hgetall(store.keys.process(ME))[b"quiet"] == b"true"
