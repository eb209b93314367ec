"""One look of a recoverer: what is broken with one dead worker holds up no other."""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import Any

import pytest
import redis

from django_cogworker.features import registry as features
from django_cogworker.features.base import Feature
from django_cogworker.store.store import get_store
from django_cogworker.store.values import Effect
from django_cogworker.worker import surroundings
from django_cogworker.worker.rescue import BATCH
from django_cogworker.worker.supervision import Loss
from tests.redis.lost import LOST, look, payload, recoverer
from tests.support.proxy import RedisProxy
from tests.support.waiting import wait_until

OTHER = "lost:8:bbbbbbbbbbbb"


def test_g60_only_what_the_dead_held_comes_back(fleet, caplog):
    """G60: not what a living worker holds, nor one's own; with one line in the log."""
    recovery = recoverer(fleet.store)
    own = recovery._membership.identity
    fleet.silent(LOST, "a", "b")
    fleet.silent("living:1:x", "c", ago=5)
    fleet.silent(own, "d", ago=500)
    with caplog.at_level(logging.WARNING):
        assert look(recovery) == 2
    assert fleet.queued() == ["a", "b"]
    assert (fleet.held("living:1:x"), fleet.held(own)) == (1, 1)
    (line,) = [each for each in caplog.messages if "is dead" in each]
    assert LOST in line
    assert "2 jobs" in line
    assert look(recovery) == 0


def test_g61_the_first_look_finds_who_never_beat_again(fleet):
    """G61"""
    fleet.has_lived(100)
    fleet.hold(LOST, "a")
    assert look(recoverer(fleet.store)) == 1
    assert fleet.knows(LOST) == set()


@pytest.mark.parametrize("broken", ["list", "text"])
def test_g76_one_broken_identity_holds_up_no_other(fleet, caplog, broken):
    """G76: the broken one comes first, being silent the longest; the look counts as done."""
    fleet.silent(LOST, "a", ago=900)
    fleet.silent(OTHER, "b", ago=90)
    key = fleet.keys.workers(LOST)
    fleet.client.delete(key)
    fleet.client.set(key, "text") if broken == "text" else fleet.client.rpush(key, "x")
    recovery = recoverer(fleet.store)
    assert look(recovery) == 1
    assert fleet.queued() == ["b"]
    assert "WRONGTYPE" in caplog.text
    assert recovery.decided.is_set()
    fleet.client.delete(key)
    fleet.hold(LOST, "c")
    assert look(recovery) == 1


def test_g76_nor_does_a_broken_one_that_the_supervisor_lost(fleet):
    fleet.silent(LOST, "a", ago=0)
    fleet.silent(OTHER, "b", ago=0)
    fleet.client.delete(fleet.keys.workers(LOST))
    fleet.client.set(fleet.keys.workers(LOST), "text")
    recovery = recoverer(fleet.store)
    noted: list[str] = []
    for identity in (LOST, OTHER):
        loss = Loss(pid=7, identity=identity, how="signal 9", at=fleet.now(), lived=1.0)
        recovery.told(loss, partial(noted.append, identity))
    assert look(recovery) == 1
    assert noted == [LOST, OTHER]
    assert fleet.queued() == ["b"]
    assert len(fleet.store.recovering.losses()) == 2


@pytest.mark.parametrize("key", ["beats", "holders", "members", "fleet_since"])
def test_g77_a_registry_of_the_wrong_type_is_told_and_survived(fleet, caplog, key):
    """G77: and when it is mended the dead are found."""
    fleet.silent(LOST, "a")
    name = getattr(fleet.keys, key)
    fleet.client.delete(name)
    fleet.client.rpush(name, "x")
    recovery = recoverer(fleet.store)
    look(recovery)
    assert recovery.fates_known is (key == "members"), "it does not count as a look"
    fleet.client.delete(name)
    fleet.silent(OTHER, "b", queue="low")
    recovery._surveys = 0  # also those without any beat
    look(recovery)
    assert recovery.fates_known
    assert (fleet.queued(), fleet.queued("low")) == (["a"], ["b"])
    assert ("WRONGTYPE" in caplog.text) is (key in ("beats", "holders"))


def test_more_jobs_than_a_batch_all_come_back_though_some_cannot(fleet):
    """E52: a whole batch that has to stay does not hide what comes behind it."""
    fleet.silent(LOST, *(f"bad{number}" for number in range(BATCH + 20)), queue="bad")
    fleet.hold(LOST, *(f"good{number}" for number in range(BATCH + 20)))
    key = fleet.keys.queue("bad").jobs
    fleet.client.set(key, "text")
    recovery = recoverer(fleet.store)
    assert look(recovery) == BATCH + 20
    assert fleet.held() == BATCH + 20
    assert fleet.knows(LOST) >= {"holders"}
    fleet.client.delete(key)
    assert look(recovery) == BATCH + 20
    assert fleet.knows(LOST) == set()


@pytest.mark.parametrize("lost", ["lose_reply", "lose_request"])
def test_g78_a_connection_lost_part_way_is_made_up_for_by_the_next_look(
    fleet, redis_url, make_proxy, lost
):
    """G78: each job comes back once, whether Redis had acted or not."""
    fleet.silent(LOST, "a", "b")
    fleet.silent(OTHER, "c")
    recovery = recoverer(fleet.store)
    proxy: RedisProxy = make_proxy(redis_url)
    verbs: Any = fleet.store.recovering
    direct, verbs._client = verbs._client, redis.Redis.from_url(proxy.url, protocol=2)
    try:
        rule = getattr(proxy, lost)(b"silent")
        with pytest.raises(redis.ConnectionError):
            look(recovery)
        assert rule.wait()
        wait_until(lambda: fleet.queued() or lost == "lose_request")
        assert not recovery.decided.is_set()
        assert not recovery.fates_known
        look(recovery)
    finally:
        verbs._client.close()
        verbs._client = direct
    assert sorted(fleet.queued()) == ["a", "b", "c"]
    assert fleet.knows(LOST) == fleet.knows(OTHER) == set()
    assert recovery.decided.is_set()
    assert recovery.fates_known


def test_g80_a_worker_without_scripts_recovers_nothing_and_waits_for_no_verdict(settings, fleet):
    """G80: in basic mode nothing in progress lies in Redis, and recovering takes a script."""
    fleet.silent(LOST, "a")
    settings.COGWORKER_FETCH = "basic"
    recovery = recoverer(get_store())
    assert look(recovery) == 0
    assert recovery.decided.is_set()
    assert recovery.fates_known
    assert fleet.held() == 1


def test_g74_a_queue_that_nobody_reads_is_listed_and_named_once(fleet, caplog):
    """G74: jobs that come back onto it wait for ever, and somebody should know."""
    fleet.silent(LOST, "a", "b", queue="nobodys")
    fleet.hold(LOST, "c")
    fleet.hold(LOST, "d", queue="others")
    fleet.client.delete(fleet.keys.queues)
    reader = "living:1:x"
    fleet.beat(reader, 1)
    fleet.client.hset(fleet.keys.process(reader), "info", json.dumps({"queues": ["others"]}))
    assert look(recoverer(fleet.store)) == 4
    assert fleet.client.smembers(fleet.keys.queues) == {b"default", b"nobodys", b"others"}
    (line,) = [each for each in caplog.messages if "no living worker reads" in each]
    assert line.endswith("reads: nobodys.")


class Counting(Feature):
    """Has something done with each job that comes back; fails for one of them."""

    name = "counting"

    def recovered(self, payload: dict[str, Any], fate: str) -> tuple[Effect, ...]:
        if payload["jid"] == "bad":
            raise ValueError("a fault of the feature")
        return (Effect("hincrby", "seen", (f"{payload['jid']} {fate}", 1)),)


def test_g68_features_take_part_and_a_fault_of_theirs_stops_nothing(fleet, caplog):
    """G68"""
    feature = Counting()
    features.add(feature)
    try:
        recovery = recoverer(fleet.store)
    finally:
        features.remove(feature)
    fleet.silent(LOST, "a", "bad", "worst", orphanings=3)
    assert look(recovery) == 3
    assert [each["jid"] for each in fleet.dead()] == ["a", "bad", "worst"]
    assert fleet.client.hgetall("seen") == {b"a dead": b"1", b"worst dead": b"1"}
    assert "A feature failed when job bad was recovered" in caplog.text
    assert {each["error_class"].rpartition(".")[2] for each in fleet.dead()} == {"JobOrphanedError"}


def test_death_hooks_that_cannot_be_run_keep_no_other_job_away(fleet, caplog, monkeypatch):
    """Such as where the database is away when a connection to it is tidied up."""

    def away() -> None:
        raise RuntimeError("the database is away")

    monkeypatch.setattr(surroundings, "before_job", away)
    fleet.silent(LOST, "a", "b", orphanings=3)
    fleet.hold(LOST, "c")
    assert look(recoverer(fleet.store)) == 3
    assert sorted(each["jid"] for each in fleet.dead()) == ["a", "b"]
    assert fleet.queued() == ["c"]
    assert caplog.text.count("could not be run") == 2


heard: list[tuple[str, str]] = []


def hear(payload: dict[str, Any], error: BaseException) -> None:
    heard.append((payload["jid"], type(error).__name__))


def test_death_hooks_hear_once_from_the_recoverer_that_buried_the_job(fleet, settings):
    settings.COGWORKER_DEATH_HANDLERS = [f"{__name__}.hear"]
    heard.clear()
    recoverers = [recoverer(get_store()) for _ in range(2)]
    fleet.silent(LOST, "killer", orphanings=3)
    fleet.silent(LOST, "failed")
    entry = payload("failed", error_message="oh", retry_count=1)
    fleet.client.hset(fleet.keys.workers(LOST), "=2", b"dead 1.0\n" + entry)
    assert [look(each) for each in recoverers] == [2, 0]
    assert sorted(heard) == [("failed", "JobFailedError"), ("killer", "JobOrphanedError")]
