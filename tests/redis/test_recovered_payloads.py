"""What a dead worker held comes back, however odd it is."""

from __future__ import annotations

import json

import pytest

from django_cogworker.store.store import get_store
from tests.redis.lost import LOST, Fleet, look, payload, recoverer

OTHER = "lost:8:bbbbbbbbbbbb"


@pytest.mark.parametrize("value", [b"no head at all", b"", b"x y\npayload", b"\xff\xfe"])
def test_e44_what_cannot_be_read_goes_to_the_default_queue(fleet, value):
    """E44: whoever fetches it next buries it whole; what lay beside it comes back."""
    fleet.silent(LOST, "a", "b")
    fleet.client.hset(fleet.keys.workers(LOST), "1", value)
    assert look(recoverer(fleet.store)) == 2
    waiting = fleet.client.lrange(fleet.keys.queue("default").jobs, 0, -1)
    assert len(waiting) == 2
    assert any(b'"b"' in each for each in waiting)
    assert fleet.knows(LOST) == set()


@pytest.mark.parametrize(
    "junk",
    [
        {"priority": True},
        {"priority": 1e300},
        {"queue": "\ud800"},
        {"orphanings": "text"},
        {"args": [float("nan")]},
    ],
)
def test_an_odd_payload_holds_up_nobody(fleet, junk):
    fleet.silent(LOST, "a")
    odd = json.dumps({**json.loads(payload("odd")), **junk}).encode()
    fleet.client.hset(fleet.keys.workers(LOST), "2", b"1 default\n" + odd)
    fleet.hold(OTHER, "b")
    fleet.beat(OTHER, 80)
    assert look(recoverer(fleet.store)) == 3
    assert fleet.knows(LOST) == fleet.knows(OTHER) == set()
    assert len(fleet.client.lrange(fleet.keys.queue("default").jobs, 0, -1)) == 3


def test_g70_a_count_that_is_none_starts_anew_and_the_limit_holds(fleet, settings):
    """G70: it travels in the payload, where anybody may have written anything."""
    settings.COGWORKER_MAX_ORPHANINGS = 2
    fleet = Fleet(get_store())
    counts = {"text": "x", "list": [1], "true": True, "minus": -3, "two": 2}
    for number, (name, count) in enumerate(counts.items()):
        fleet.silent(f"lost:{number}:x", name, orphanings=count)
    assert look(recoverer(fleet.store)) == 5
    assert [each["jid"] for each in fleet.dead()] == ["two"]
    waiting = fleet.client.lrange(fleet.keys.queue("default").jobs, 0, -1)
    assert [json.loads(each)["orphanings"] for each in waiting] == [1] * 4


@pytest.mark.parametrize("note", ["junk", "retry x\n{}", "", "retry"])
def test_g86_a_note_that_cannot_be_read_is_none(fleet, note):
    """G86: then the job is judged as if it were not there; what lies beside it comes back."""
    fleet.silent(LOST, "a", "b", "c")
    key = fleet.keys.workers(LOST)
    fleet.client.hset(key, "=1", note)
    fleet.client.hset(key, "=2", b"retry 4000000000.5\n" + payload("b", retry_count=1))
    assert look(recoverer(fleet.store)) == 3
    assert fleet.queued() == ["a", "c"]
    ((raw, due),) = fleet.client.zrange(fleet.keys.retry, 0, -1, withscores=True)
    assert (raw, due) == (payload("b", retry_count=1), 4000000000.5)
    assert fleet.client.get(fleet.keys.failed) == b"1"
