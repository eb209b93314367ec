"""Status: what is known of a tracked job at each step, what it promises and what a late word cannot do."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import threading
import time
from typing import Any

import pytest

from django_cogworker import api
from django_cogworker.exceptions import (
    JobFailedError,
    NoResultError,
    NotTrackedError,
    ResultTimeout,
)
from django_cogworker.features.base import Run
from django_cogworker.features.status import record
from django_cogworker.features.status.feature import StatusFeature
from django_cogworker.payload.codec import decode
from django_cogworker.store.store import get_store
from django_cogworker.store.values import Effect
from tests.followed.jobs import Answer, ClaimCancelled, Followed, FollowedWait, Unkept
from tests.project.jobs import Append
from tests.redis.test_basic_mode import working
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("redis_url", "journal")


@pytest.fixture(autouse=True)
def few(settings):
    settings.COGWORKER_CONCURRENCY = 2


def known(jid: Any) -> api.JobStatus:
    found = api.status(jid)
    assert found is not None
    return found


# -- what is known


def test_n209_a_push_writes_queued_with_a_ttl_and_nothing_is_known_of_others(redis_client):
    """N209, and 12.3-4: the status comes with the push, so it is there before any worker can see the job."""
    jid = Followed.perform_async("a")
    found = known(jid)
    assert (found.state, found.queue, found.attempt) == ("queued", "default", 1)
    assert found.job_class == "tests.followed.jobs.Followed"
    assert abs(found.updated - time.time()) < 5
    assert redis_client.ttl(record.key_of(str(jid))) > 1800
    assert api.status("0" * 24) is None
    assert api.status(str(Append.perform_async("b"))) is None


def test_a_bulk_push_writes_the_status_of_each():
    jids = Followed.perform_bulk([("a",), ("b",)])
    assert [known(each).state for each in jids] == ["queued", "queued"]


def test_a_scheduled_job_is_remembered_for_longer_than_it_waits(redis_client):
    jid = Followed.perform_in(10 * 86_400, "a")
    found = known(jid)
    assert found.state == "scheduled"
    assert found.due is not None
    assert abs(found.due - time.time() - 10 * 86_400) < 5
    assert redis_client.ttl(record.key_of(str(jid))) > 10 * 86_400


def test_n210_a_run_ends_complete_with_what_the_job_said_of_itself(journal, redis_client, settings):
    """N210"""
    settings.COGWORKER_STATUS_EXPIRATION = 77
    with working():
        jid = Followed.perform_async("a")
        found = api.wait(jid, 10)
    assert (found.state, found.percent, found.message) == ("complete", 100.0, "half")
    assert found.stored == {"name": "a", "state": "mine"}
    assert found.worker == ""
    assert 0 < redis_client.ttl(record.key_of(str(jid))) <= 77


def test_n210_a_failure_is_retrying_then_complete_or_dead():
    """N210, with our words: what ends in the dead set is dead."""
    with working():
        jid = Followed.perform_async("a", 1)
        assert known(jid).state in ("queued", "working", "retrying")
        found = api.wait(jid, 10)
        assert (found.state, found.attempt, found.error_class) == ("complete", 2, "")
        dead = api.wait(str(Followed.set(retry=1).perform_async("b", 9)), 10)
    assert (dead.state, dead.error_class, dead.error_message) == ("dead", "ValueError", "b fails")


def test_n210_one_that_waits_for_its_retry_says_when_and_why(monkeypatch):
    """N210"""
    monkeypatch.setattr(Followed, "retry_in", classmethod(lambda cls, *args: 600.0))
    with working():
        jid = Followed.perform_async("a", 9)
        wait_until(lambda: known(jid).state == "retrying")
    found = known(jid)
    assert (found.error_class, found.error_message) == ("ValueError", "a fails")
    assert found.due is not None
    assert 500 < found.due - time.time() <= 600


def test_a_running_job_names_its_worker(journal):
    with working() as launcher:
        jid = FollowedWait.perform_async("a")
        journal.wait_for("started a")
        found = known(jid)
        assert found.state == "working"
        assert found.worker == api.find_job(str(jid)).worker != ""
        assert launcher is not None
        journal.release("a")
        api.wait(jid, 10)


def test_a_job_without_tracking_costs_no_request_more(redis_client, journal):
    with working():
        Append.perform_async("a")
        journal.wait_for("a")
    assert redis_client.keys("cogworker:status:*") == []


# -- late words


def test_a_late_start_or_report_never_writes_over_a_newer_end():
    """Of a worker that was taken for dead, and whose job has ended elsewhere."""
    jid = str(Followed.perform_async("a"))
    raw: Any = get_store().client.lindex(get_store().keys.queue("default").jobs, 0)
    payload = decode(raw)
    feature, store = StatusFeature(), get_store()
    store.apply([record.begun(payload, "first")])
    recovered = {**payload, "orphanings": 1}
    store.apply(feature.recovered(recovered, "front"))
    store.apply([record.reported(payload, {"pct": "66"})])
    assert known(jid).percent is None
    store.apply([record.begun(recovered, "second")])
    store.apply([record.begun(payload, "first")])
    assert known(jid).worker == "second"
    store.apply(feature.settled(Run(recovered, "finished")))
    store.apply([record.begun(payload, "first"), record.begun(recovered, "second")])
    store.apply([record.reported(recovered, {"pct": "5"})])
    assert (known(jid).state, known(jid).percent) == ("complete", 100.0)


def test_what_a_stopped_run_still_reports_comes_too_late():
    jid = str(Followed.perform_async("a"))
    raw: Any = get_store().client.lindex(get_store().keys.queue("default").jobs, 0)
    payload, store = decode(raw), get_store()
    store.apply([record.begun(payload, "one")])
    store.apply(StatusFeature().requeued(payload))
    store.apply([record.reported(payload, {"pct": "66"})])
    assert (known(jid).state, known(jid).percent) == ("queued", None)
    store.apply([record.begun({**payload, "interruptions": 1}, "two")])
    assert known(jid).state == "working"


def test_advance_writes_unless_a_higher_number_is_there(store, redis_client):
    store.apply([Effect("advance", "h", ("n", "5", 60, "a", "1"))])
    store.apply([Effect("advance", "h", ("n", "4", 900, "a", "2", "b", "2"))])
    assert redis_client.hgetall("h") == {b"n": b"5", b"a": b"1"}
    assert redis_client.ttl("h") <= 60
    store.apply([Effect("advance", "h", ("n", "5", 60, "a", "3"))])
    store.apply([Effect("advance", "h", ("n", "10", 60, "b", "4"))])
    assert redis_client.hgetall("h") == {b"n": b"10", b"a": b"3", b"b": b"4"}


# -- results


@pytest.mark.parametrize(
    "value",
    [None, 0, "", [1, "zwei"], {"$": 1}, (1, 2), dt.date(2026, 11, 30), decimal.Decimal("1.50")],
    ids=repr,
)
def test_a_result_comes_back_as_its_type(value):
    with working():
        jid = Answer.perform_async(value)
        found = api.result(jid, timeout=10)
        assert (found, type(found)) == (value, type(value))


def test_tq9_waiting_without_a_result_is_an_error_with_a_hint():
    """TQ-9"""
    with pytest.raises(NotTrackedError, match=r"track=True or result_ttl"):
        api.result(Append.perform_async("a"), timeout=5)
    with pytest.raises(NoResultError, match=r"give its class result_ttl"):
        api.result(Followed.perform_async("a"), timeout=5)
    with pytest.raises(ValueError, match="refused as a duplicate"):
        api.result(None, timeout=5)
    with pytest.raises(ValueError, match="number of seconds"):
        api.wait("a", -1)


def test_tq9_the_wait_ends_in_time_and_says_why():
    """TQ-9"""
    jid = Answer.perform_async("a")
    began = time.monotonic()
    with pytest.raises(ResultTimeout, match="it is queued") as caught:
        api.result(jid, timeout=0.2)
    assert isinstance(caught.value, TimeoutError)
    assert 0.2 <= time.monotonic() - began < 3


def test_tq9_a_retry_keeps_the_jid_and_the_wait_goes_on():
    """TQ-9"""
    with working():
        assert api.result(Answer.perform_async("a", 1), timeout=15) == "a"


def test_tq9_the_wait_survives_a_redis_that_goes_away(make_redis_server, settings):
    """TQ-9"""
    server = make_redis_server(appendonly="yes")
    settings.COGWORKER_REDIS = server.url
    jid = Answer.perform_async("a")
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(api.result(jid, timeout=60)))
    waiting.start()
    server.kill()
    with pytest.raises(ResultTimeout, match="Redis cannot be asked"):
        api.result(jid, timeout=0.3)
    server.start()
    with working():
        waiting.join(60)
    assert found == ["a"]


def test_coroutines_wait_too():
    async def main() -> Any:
        jid = await Answer.aperform_async("a")
        status = await api.astatus(str(jid))
        assert status is not None
        assert status.has_ended in (True, False)
        assert (await api.await_end(str(jid), 10)).state == "complete"
        return await api.aresult(str(jid), timeout=10)

    with working():
        assert asyncio.run(main()) == "a"


def test_a_failure_is_told_to_whoever_waits():
    with working():
        with pytest.raises(JobFailedError, match="is dead: ValueError: a fails"):
            api.result(Answer.set(retry=False).perform_async("a", 9), timeout=10)
        with pytest.raises(NoResultError, match="the return value is a builtins.object"):
            api.result(Unkept.perform_async(), timeout=10)


def test_an_unasked_for_cancelled_error_is_a_failure_like_any_other():
    with working():
        found = api.wait(str(ClaimCancelled.set(track=True).perform_async("a")), 10)
    assert (found.state, found.error_class) == (
        "dead",
        "django_cogworker.exceptions.JobCancelled",
    )


# -- finding


def test_a_job_is_found_wherever_it_is(journal):
    """DR-9: also one that is not tracked."""
    later = str(Append.perform_in(500, "b"))
    on_queue = str(Append.set(priority=4, queue="low").perform_async("c"))
    found = api.find_job(later)
    assert (found.place, found.queue, bool(found)) == ("schedule", "default", True)
    assert found.payload is not None
    assert found.payload["args"] == ["b"]
    assert api.find_job(on_queue).queue == "low"
    nothing = api.find_job("no such job")
    assert not nothing
    assert (nothing.everywhere, nothing.looked_at) == (True, 2)
    assert api.find_job(str(Followed.perform_async("d"))).state == "queued"


def test_a_search_says_how_far_it_came():
    Append.perform_bulk([(str(each),) for each in range(600)])
    found = api.find_job("no such job", budget=0)
    assert not found
    assert not found.everywhere
    assert found.looked_at < 600
