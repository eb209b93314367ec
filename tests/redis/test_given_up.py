"""A stop that waits no longer, in the moment in which a processor begins with an at-most-once job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from django_cogworker import Job
from django_cogworker.conf import get_config
from django_cogworker.payload.codec import decode_on
from django_cogworker.store.store import Store, get_store
from django_cogworker.worker.bulletin import Bulletin
from django_cogworker.worker.death import DeathHooks
from django_cogworker.worker.health import Health
from django_cogworker.worker.identity import Membership
from django_cogworker.worker.manager import Manager
from django_cogworker.worker.outage import Outage
from tests.support.waiting import wait_until

ran: list[str] = []


class Once(Job, at_most_once=True):
    def perform(self) -> None:
        ran.append("once")


class Gated:
    """A store of which some verbs are replaced."""

    def __init__(self, store: Store, **verbs: Callable[..., Any]) -> None:
        self._store = store
        self._verbs = verbs

    def __getattr__(self, name: str) -> Any:
        return self._verbs.get(name) or getattr(self._store, name)


def manager_of(store: Any) -> Manager:
    membership = Membership()
    membership.present = membership.identity
    config = get_config()
    return Manager(
        store=store,
        config=config,
        membership=membership,
        outage=Outage("redis"),
        due_in=lambda milliseconds: None,
        death=DeathHooks(config),
        may_start=lambda: True,
        bulletin=Bulletin(),
        health=Health(lambda: membership.identity, lambda: True),
    )


@pytest.fixture(autouse=True)
def _one_processor(redis_url: str, settings: Any) -> None:
    settings.COGWORKER_CONCURRENCY = 1
    ran.clear()


@pytest.mark.parametrize("gate", ["before it is decoded", "before it is marked"])
def test_what_the_stop_has_given_back_does_not_begin_any_more(monkeypatch, gate):
    store = get_store()
    Once.perform_async()
    reached, go, marked = threading.Event(), threading.Event(), threading.Event()

    def decode_late(*args: Any) -> Any:
        if gate == "before it is decoded":
            reached.set()
            go.wait(10)
        return decode_on(*args)

    def mark(*args: Any) -> bool:
        if gate == "before it is marked":
            reached.set()
            go.wait(10)
        answer = store.mark_started(*args)
        marked.set()
        return answer

    def exchange(request: Any) -> Any:
        if request.settlements:
            marked.wait(10)  # Redis hears of the start first
        return store.exchange(request)

    monkeypatch.setattr("django_cogworker.worker.handling.decode_on", decode_late)
    manager = manager_of(Gated(store, exchange=exchange, mark_started=mark))
    manager.start()
    assert reached.wait(10)
    settle = manager.fetcher.settle

    def settle_then_go(*args: Any) -> None:
        settle(*args)
        go.set()

    monkeypatch.setattr(manager.fetcher, "settle", settle_then_go)
    manager.stop(at_once=lambda: True)
    wait_until(lambda: not manager.hand.running)
    assert marked.is_set()
    assert ran == []
    assert store.client.llen(store.keys.queue("default").jobs) == 1
    assert store.client.zcard(store.keys.dead) == 0
