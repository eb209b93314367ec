"""The options `timeout` and `expires_in`: what they take, what they put into a payload, and what the test
modes make of them. No Redis.
"""

from __future__ import annotations

import datetime as dt
import time

import pytest
from django.db import connection

from django_cogworker.client import push
from django_cogworker.exceptions import CogworkerError, InvalidOption, InvalidPayload, JobTimeout
from django_cogworker.features.timeout.clock import clock
from django_cogworker.features.timeout.limit import Limit
from django_cogworker.testing import fake, inline
from tests.limits import jobs
from tests.project.jobs import Append


@pytest.mark.parametrize("value", [0, -1, True, "60", float("nan"), float("inf"), dt.timedelta(0)])
@pytest.mark.parametrize("name", ["timeout", "expires_in"])
def test_only_durations_are_taken(name, value):
    with pytest.raises(InvalidOption, match=rf"{name}=.*seconds above 0, a timedelta, or None"):
        Append.set(**{name: value})


def test_what_goes_into_the_payload():
    before = time.time()
    with fake() as transport:
        Append.perform_async("plain")
        Append.set(timeout=dt.timedelta(minutes=1), expires_in=5).perform_async("now")
        Append.set(expires_in=dt.timedelta(seconds=5)).perform_at(before + 100, "later")
        Append.set(expires_in=5).set(expires_in=None).perform_async("never mind")
        Append.set(expires_in=5).perform_bulk([("one",)])
        plain, now, later, never, bulk = transport.jobs()
    assert not {"timeout", "expires_at", "expires_in"} & (plain.keys() | never.keys())
    assert now["timeout"] == 60
    for each in (now, bulk):
        assert each["expires_at"] == pytest.approx(each["created_at"] + 5)
    assert later["expires_at"] == pytest.approx(before + 105)


@pytest.mark.parametrize("fields", [{"timeout": 0}, {"timeout": "1"}, {"expires_at": "soon"}])
def test_a_hand_made_payload_with_nonsense_is_refused(fields):
    with fake(), pytest.raises(InvalidPayload, match=next(iter(fields))):
        push({"class": "x.Y", **fields})


def test_a_limit_holds_in_the_test_modes(journal):
    with inline(), pytest.raises(JobTimeout, match=r"longer than its limit of 0\.1 s") as caught:
        jobs.Loop.set(timeout=0.1).perform_async("a")
    assert isinstance(caught.value, TimeoutError)
    assert isinstance(caught.value, CogworkerError)
    with fake() as transport:
        jobs.Coroutine.set(timeout=0.1).perform_async("b")
        with pytest.raises(JobTimeout):
            transport.drain()
    assert journal.lines()[-2:] == ["cancelled b", "cleaned b"]
    assert clock._timed == {}


@pytest.mark.django_db
def test_a_time_out_leaves_the_transaction_of_a_test_alone(journal):
    with inline(), pytest.raises(JobTimeout):
        jobs.Loop.set(timeout=0.05).perform_async("a")
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert connection.in_atomic_block


def test_an_expired_job_runs_in_the_test_modes(journal):
    with fake() as transport:
        push({"class": Append.job_name, "args": ["late"], "expires_at": 1})
        assert transport.drain() == 1
    assert journal.lines() == ["late"]


def run(limit, code):
    return limit.call(code)


def test_an_interruption_that_was_set_and_has_not_landed_is_taken_back():
    """The clock fires in the moment of the end, again and again: none gets out of its run."""
    stray = 0
    for number in range(2000):
        limit = Limit({}, 0.0002, 30, lambda limit: None)
        try:
            run(limit, lambda n=number: sum(range(100 + n % 50 * 40)))
        except JobTimeout:
            assert limit._fired
        try:
            for _ in range(20):
                sum(range(10))
        except JobTimeout:
            stray += 1
    assert stray == 0
    assert clock._timed == {}


def test_a_clock_that_comes_late_changes_nothing():
    """It had taken the limit from its list when the job ended."""
    limit = Limit({}, 60, 30, lambda limit: None)
    assert run(limit, lambda: 5) == 5
    limit.due(time.monotonic())
    sum(range(10))  # here it would land
    assert limit.error is None
    assert not limit._fired


def test_an_interruption_that_lands_while_disarming_has_it_begun_again(monkeypatch):
    calls = []
    remove = clock.remove

    def interrupted(timed):
        calls.append(timed)
        if len(calls) == 1:
            raise JobTimeout
        remove(timed)

    monkeypatch.setattr(clock, "remove", interrupted)
    limit = Limit({}, 60, 30, lambda limit: None)
    assert run(limit, lambda: 5) == 5
    assert calls == [limit, limit]
    assert clock._timed == {}


def test_what_the_job_raises_in_time_is_its_own_error():
    limit = Limit({}, 60, 30, lambda limit: None)
    with pytest.raises(ZeroDivisionError):
        run(limit, lambda: 1 // 0)
    assert limit.error is None
    assert clock._timed == {}


def test_another_error_that_is_made_of_the_time_out_is_a_time_out():
    def convert():
        try:
            while True:
                sum(range(100))
        except JobTimeout:
            raise KeyError("other") from None

    limit = Limit({}, 0.5, 30, lambda limit: None)
    with pytest.raises(JobTimeout) as caught:
        run(limit, convert)
    assert isinstance(caught.value.__cause__, KeyError)
