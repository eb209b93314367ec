"""Redis's memory follows the jobs in flight, not the jobs that ever were."""

from __future__ import annotations

from typing import Any

from django_cogworker.store.store import Store, get_store
from django_cogworker.store.values import ExchangeRequest, Outgoing, Settlement
from tests.redis.lost import payload

ME = "host:1:aaaaaaaaaaaa"
BATCH = 250


def run_jobs(store: Store, number: int, begin: int) -> None:
    """So many jobs come, run and end, one in ten by a retry that succeeds; nothing is left."""
    for first in range(begin, begin + number, BATCH):
        names = [f"j{each}" for each in range(first, first + BATCH)]
        jobs = [Outgoing(each, "default", payload(each)) for each in names]
        assert store.push("lane", first, jobs) == [None] * BATCH
        request = ExchangeRequest(ME, first, BATCH, ("default",), (), ())
        tickets = [each.ticket for each in store.exchange(request).jobs]
        failed = [Settlement(each, "ack", counter="failed") for each in tickets[::10]]
        good = [each for each in tickets if each not in tickets[::10]]
        last = first + BATCH
        store.exchange(ExchangeRequest(ME, last, 0, (), good, failed))


def test_tq3_memory_does_not_grow_with_the_jobs_that_have_run(make_redis_server, settings):
    """TQ-3: ten thousand jobs later it is what it was after the first ones."""
    settings.COGWORKER_REDIS = make_redis_server().url
    store = get_store()
    client: Any = store.client
    run_jobs(store, 1_000, 1)
    keys, before = client.dbsize(), client.info("memory")["used_memory"]
    run_jobs(store, 10_000, 1_001)
    assert client.get(store.keys.processed) == b"9900"
    assert client.dbsize() == keys
    # One job is about 300 bytes there: a hundredth of these would be seen.
    assert client.info("memory")["used_memory"] - before < 30_000
