"""Cancelling a job in each of its states."""

from __future__ import annotations

from typing import Any

import pytest

from django_cogworker import api
from django_cogworker.exceptions import JobCancelled
from django_cogworker.features import registry
from django_cogworker.features.base import Feature, Run
from django_cogworker.store.store import get_store
from tests.followed.jobs import Answer, Followed, FollowedWait, ReportUntilCancelled
from tests.project.jobs import Append
from tests.redis.test_basic_mode import working
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("redis_url", "journal")


@pytest.fixture(autouse=True)
def few(settings):
    settings.COGWORKER_CONCURRENCY = 2


def sizes() -> tuple[int, int, int]:
    stats = api.Stats.now()
    return stats.enqueued, stats.scheduled, stats.retrying


@pytest.mark.parametrize("job", [Append, Followed])
@pytest.mark.parametrize("options", [{}, {"priority": 5}, {"queue": "low"}])
def test_dr9_what_waits_on_a_queue_is_removed_at_once(job, options):
    """DR-9"""
    job.set(**options).perform_bulk([("x",)] * 3)
    jid = str(job.set(**options).perform_async("unwanted"))
    assert api.cancel(jid) == "removed"
    assert sizes() == (3, 0, 0)
    assert not api.find_job(jid) or api.find_job(jid).state == "cancelled"


@pytest.mark.parametrize("job", [Append, Followed])
def test_dr9_what_is_scheduled_is_removed_at_once(job):
    """DR-9"""
    job.perform_in(500, "x")
    assert api.cancel(str(job.perform_in(500, "unwanted"))) == "removed"
    assert sizes() == (0, 1, 0)


def test_dr9_what_waits_for_its_retry_is_removed_at_once(monkeypatch):
    """DR-9"""
    monkeypatch.setattr(Followed, "retry_in", classmethod(lambda cls, *args: 600.0))
    with working():
        jid = str(Followed.perform_async("a", 9))
        wait_until(lambda: api.find_job(jid).state == "retrying")
        assert api.cancel(jid) == "removed"
    assert sizes() == (0, 0, 0)
    assert api.find_job(jid).state == "cancelled"


def test_a_cancelled_job_has_no_result(journal):
    jid = str(Answer.perform_async("a"))
    api.cancel(jid)
    with pytest.raises(JobCancelled):
        api.result(jid, timeout=5)
    assert api.cancel(jid) == "ended"


def test_dr9_what_is_not_found_in_time_is_dropped_by_the_worker(journal):
    """DR-9: the wish stands, whatever the search came to."""
    Append.perform_bulk([(f"n{each}",) for each in range(3)])
    jid = str(Append.perform_async("unwanted"))
    assert api.cancel(jid, budget=0) == "asked"
    Append.perform_async("last")
    with working():
        journal.wait_for("last")
        wait_until(lambda: sizes() == (0, 0, 0))
    assert journal.count("unwanted") == 0
    assert api.Stats.now().processed == 4


def test_dr9_a_worker_that_lives_drops_what_was_cancelled_since(journal):
    """DR-9"""
    with working():
        Append.perform_async("first")
        journal.wait_for("first")
        jid = str(Followed.perform_in(1, "unwanted"))
        api.cancel(jid, budget=0)
        Append.perform_async("second")
        journal.wait_for("second")
        other = str(Append.perform_in(1, "unwanted"))
        api.cancel(other, budget=0)
        Append.perform_in(1.2, "last")
        journal.wait_for("last")
        wait_until(lambda: sizes() == (0, 0, 0))
    assert journal.count("unwanted") == 0


def test_dr9_a_running_job_is_asked_and_ends_without_a_failure(journal):
    """DR-9"""
    with working():
        jid = str(ReportUntilCancelled.set(track=True).perform_async("a"))
        journal.wait_for("started a")
        assert api.cancel(jid) == "asked"
        found = api.wait(jid, 20)
        assert journal.count("a JobCancelled True") == 1
    assert found.state == "cancelled"
    stats = api.Stats.now()
    assert (stats.failed, stats.retrying, stats.dead) == (0, 0, 0)
    assert get_store().client.hlen(get_store().keys.holders) == 0


def test_a_running_job_that_does_not_look_ends_as_it_would(journal):
    with working():
        jid = str(FollowedWait.perform_async("a"))
        journal.wait_for("started a")
        assert api.cancel(jid) == "asked"
        journal.release("a")
        assert api.wait(jid, 10).state == "complete"
    assert api.cancel(jid) == "ended"


class Locks(Feature):
    """Frees something at the end of a job."""

    name = "locks"

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    def settled(self, run: Run) -> tuple[Any, ...]:
        self.heard.append((run.outcome, run.payload["args"]))
        return ()


def test_features_hear_of_the_end_of_a_cancelled_job():
    """So the lock of a unique job goes with it."""
    feature = Locks()
    registry.add(feature)
    try:
        api.cancel(str(Append.perform_async("a")))
    finally:
        registry.remove(feature)
    assert feature.heard == [("cancelled", ["a"])]


def test_the_wishes_have_a_bound_and_a_ttl(redis_client):
    for number in range(3):
        api.cancel(f"none-{number}")
    key = get_store().keys.of("cancel", "asked")
    assert redis_client.zcard(key) == 3
    assert 0 < redis_client.ttl(key) <= 30 * 86_400


@pytest.mark.parametrize("jid", ["", None, 7])
def test_what_is_no_jid_is_refused(jid):
    with pytest.raises(ValueError, match="jid of a job"):
        api.cancel(jid)
    with pytest.raises(ValueError, match="jid of a job"):
        api.find_job(jid)
