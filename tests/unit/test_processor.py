"""One processor without Redis: what it leaves on the desk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from django_cogworker import Job
from django_cogworker.conf import get_config
from django_cogworker.features import registry as features
from django_cogworker.features.base import Feature, Run
from django_cogworker.store.keys import Keys
from django_cogworker.store.store import Store
from django_cogworker.store.values import Effect, Settlement
from django_cogworker.worker import surroundings
from django_cogworker.worker.chain import build_server_chain
from django_cogworker.worker.death import DeathHooks
from django_cogworker.worker.hand import Hand, Unit
from django_cogworker.worker.processor import Processor
from django_cogworker.worker.runner import Runner
from django_cogworker.worker.solitude import Solitude


class Sometimes(Job):
    def perform(self, fails: bool) -> None:
        if fails:
            raise ValueError("oh")


class Faulty(Feature):
    """Fails at the end of every job."""

    name = "faulty"

    def settled(self, run: Run) -> tuple[Effect, ...]:
        raise RuntimeError("a fault of the feature")


class Desk:
    """What the fetcher would get."""

    def __init__(self) -> None:
        self.done: list[Unit] = []
        self.settled: list[Settlement] = []

    def finished(self, unit: Unit) -> None:
        self.done.append(unit)

    def settle(self, unit: Unit, settlement: Settlement) -> None:
        self.settled.append(settlement)


@pytest.fixture
def faulty() -> Iterator[None]:
    feature = Faulty()
    features.add(feature)
    yield
    features.remove(feature)


def run(fails: bool) -> Desk:
    config, hand, desk = get_config(), Hand(), Desk()
    processor = Processor(
        store=cast(Store, SimpleNamespace(keys=Keys("test:"))),
        hand=hand,
        desk=desk,
        runner=Runner(build_server_chain(config), lambda: False),
        death=DeathHooks(config),
        solitude=Solitude(hand, lambda wish: None, lambda: False),
        may_start=lambda: True,
    )
    payload = {"class": Sometimes.job_name, "jid": "j", "args": [fails], "queue": "default"}
    hand.offer([Unit(1, "host:1:x", "default", json.dumps(payload).encode(), 0)])
    hand.close(1)
    processor.loop(0)
    return desk


def test_a_feature_that_fails_at_the_end_of_a_job_changes_nothing(faulty, monkeypatch, caplog):
    """12.2: a success stays one, a failure has its retry, and the fault is told."""
    for each in ("before_job", "after_job", "thread_ends"):
        monkeypatch.setattr(surroundings, each, lambda *_: None)
    good = run(fails=False)
    assert ([each.ticket for each in good.done], good.settled) == ([1], [])
    (filed,) = run(fails=True).settled
    assert (filed.disposition, filed.counter) == ("retry", "failed")
    assert json.loads(filed.payload or b"")["error_message"] == "oh"
    assert caplog.text.count("A feature failed when job j was settled") == 2
