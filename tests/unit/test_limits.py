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
from django_cogworker.features.interrupting.clock import clock
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


def test_in_fake_mode_an_expired_job_is_dropped_inline_it_runs(journal):
    late = {"class": Append.job_name, "args": ["late"], "expires_at": 1}
    with fake() as transport:
        push(late)
        assert transport.drain() == 0
        assert transport.jobs() == []
    assert journal.lines() == []
    with inline():
        push(late)
    assert journal.lines() == ["late"]
