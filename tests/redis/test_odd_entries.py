"""What other hands wrote into Redis is buried or tamed, and holds up nothing that lies behind it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from django_cogworker.api import Queue
from django_cogworker.exceptions import UnparseablePayload
from django_cogworker.payload.codec import decode, decode_on, encode
from django_cogworker.payload.job import priority_of
from django_cogworker.store.store import Store, get_store
from django_cogworker.store.values import ExchangeRequest
from django_cogworker.worker import settlement
from django_cogworker.worker.hand import Unit
from django_cogworker.worker.outage import Outage
from django_cogworker.worker.scheduler import Scheduler
from tests.redis.lost import payload

#: As bytes: the last two are what Python alone reads, and would not write again.
ODD = [
    payload("odd", priority=True),
    payload("odd", queue="\ud800"),
    payload("odd", args=[math.nan]),
    payload("odd").replace(b'"args":[]', b'"args":[1e999]'),
]
ME = "host:1:aaaaaaaaaaaa"


@pytest.fixture
def store(redis_url: str) -> Store:
    return get_store()


def waiting(store: Store) -> list[bytes]:
    found: list[bytes] = store.client.lrange(store.keys.queue("default").jobs, 0, -1)  # type: ignore[assignment]
    return found


@pytest.mark.parametrize("odd", ODD)
def test_l169_an_odd_due_entry_lets_the_good_one_behind_it_pass(store, odd):
    """L169: it goes to the queue or to the dead set, and the mover comes to the next one."""
    keys, client = store.keys, store.client
    client.zadd(keys.schedule, {odd: 1, payload("good"): 2})
    client.zadd(keys.retry, {odd: 1})
    Scheduler(store=store, outage=Outage("redis"), turned=lambda: None).move_due()
    assert any(b'"good"' in each for each in waiting(store))
    assert client.zcard(keys.schedule) == client.zcard(keys.retry) == 0
    assert len(waiting(store)) - 1 + client.zcard(keys.dead) in (1, 2)


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_job_is_given_back_like_any_other(store, odd):
    store.client.lpush(store.keys.queue("default").jobs, payload("good"), odd)
    request = ExchangeRequest(ME, 1, 2, ("default",), (), ())
    units = [
        Unit(each.ticket, ME, each.queue, each.payload, each.fetched_ms)
        for each in store.exchange(request).jobs
    ]
    back = [settlement.interrupted_by_stop(each)[0] for each in reversed(units)]
    verdicts = store.exchange(ExchangeRequest(ME, 3, 0, (), (), back)).verdicts
    assert list(verdicts) == [1, 1]
    assert len(waiting(store)) == 2
    assert json.loads(waiting(store)[1])["jid"] == "good"


@pytest.mark.parametrize("odd", ODD)
def test_what_is_read_as_a_job_can_be_written_again(odd):
    if odd in ODD[2:]:
        with pytest.raises(UnparseablePayload, match="Not JSON"):
            decode_on("default", odd)
    else:
        job = decode_on("default", odd)
        assert decode(encode(job)) == job
        assert job["queue"] == "default"


@pytest.mark.parametrize(
    ("priority", "counts"),
    [(5, 5), (-100, -100), (101, 0), (True, 0), (1.5, 0), ("5", 0), (None, 0), (10**30, 0)],
)
def test_only_a_whole_number_in_range_is_a_priority(priority: Any, counts: int):
    assert priority_of({"priority": priority}) == counts
    assert priority_of({}) == 0


@pytest.mark.parametrize("junk", [b"junk", b"[1]", b'{"class":"x","jid":"j","enqueued_at":"x"}'])
def test_a_queue_whose_next_entry_is_no_job_still_tells_of_itself(store, junk):
    """12.3-7"""
    store.client.lpush(store.keys.queue("default").jobs, payload("good"), junk)
    store.client.rpoplpush(store.keys.queue("default").jobs, store.keys.queue("default").jobs)
    queue = Queue("default")
    assert (queue.size, queue.latency) == (2, 0.0)
