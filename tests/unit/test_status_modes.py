"""Status and cancelling where no Redis is: options, the payload, the test modes."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from django_cogworker import api, testing
from django_cogworker.client import push_bulk
from django_cogworker.exceptions import (
    InvalidOption,
    JobCancelled,
    NoResultError,
    NotTrackedError,
    TestModeError,
)
from django_cogworker.features.status import record
from django_cogworker.jobs.context import JobContext
from django_cogworker.jobs.options import no_options
from tests.followed.jobs import Answer, Followed
from tests.project.jobs import Append

pytestmark = pytest.mark.usefixtures("journal")


@pytest.fixture(autouse=True)
def no_redis(settings):
    """Nothing listens there: whoever asks fails."""
    settings.COGWORKER_REDIS = "redis://127.0.0.1:1/0"


def fields(**options):
    made = no_options().merged(options, "Some.job").fields
    return {each: made[each] for each in ("track", "result_ttl") if each in made}


def known(jid: str) -> api.JobStatus:
    found = api.status(jid)
    assert found is not None
    return found


def test_the_options_travel_only_where_they_are_used():
    assert fields() == fields(track=None) == fields(result_ttl=None) == {}
    assert fields(track=False) == {"track": False}
    assert fields(track=True) == {"track": True}
    assert fields(result_ttl=60) == {"track": True, "result_ttl": 60.0}
    assert fields(result_ttl=dt.timedelta(hours=1))["result_ttl"] == 3600.0
    assert fields(track=False, result_ttl=5)["track"] is True


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"track": 1}, "True or False"),
        ({"result_ttl": 0}, "a positive number of seconds, or a timedelta, or None"),
        ({"result_ttl": True}, "a positive number of seconds"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(options, said):
    with pytest.raises(InvalidOption, match=said):
        no_options().merged(options, "Some.job")


def test_the_number_of_a_word_grows_with_the_life_of_a_job():
    first = {"jid": "a"}
    life = [
        record.order_of(first, 0),
        record.order_of(first, 1),
        record.order_of(first, 2),
        record.order_of({**first, "orphanings": 1}, 0),
        record.order_of({**first, "orphanings": 1, "interruptions": 1}, 1),
        record.order_of({**first, "retry_count": 1}, 0),
        record.order_of({**first, "retry_count": 2, "orphanings": "junk"}, 0),
    ]
    assert life == sorted(set(life))


def test_fake_mode_knows_the_status_and_result():
    with testing.fake() as jobs:
        jid = str(Answer.perform_async((1, 2)))
        assert known(jid).state == "queued"
        assert api.find_job(jid).place == "queue"
        with pytest.raises(TestModeError, match=r"perform_one\(\) or drain\(\)"):
            api.result(jid, timeout=5)
        jobs.drain()
        assert api.result(jid) == (1, 2)
        failing = str(Answer.perform_async("x", 1))
        with pytest.raises(ValueError, match="x fails"):
            jobs.drain()
        assert (known(failing).state, known(failing).error_message) == (
            "failed",
            "x fails",
        )
    with testing.fake():
        assert api.status(jid) is None


def test_fake_mode_keeps_what_a_job_says_of_itself():
    with testing.fake() as jobs:
        jid = str(Followed.perform_async("a"))
        jobs.drain()
        found = known(jid)
        assert (found.state, found.percent, found.message) == ("complete", 100.0, "half")
        assert found.stored == {"name": "a", "state": "mine"}


def test_fake_mode_knows_nothing_of_a_job_whose_push_was_refused_or_that_was_forgotten():
    once = Answer.set(unique=True)
    with testing.fake() as jobs:
        first = str(once.perform_async("a"))
        assert push_bulk([{"class": "x", "jid": "b", "unique": True, "args": ["a"]}]) == ["b"]
        refused = {"class": "x", "jid": "c", "unique": True, "args": ["a"]}
        assert push_bulk([refused]) == [None]
        assert api.status("c") is None
        assert (known(first).state, known("b").state) == ("queued", "queued")
        jobs.clear()
        assert api.status(first) is None


def test_inline_mode_has_the_result_at_once():
    with testing.inline():
        assert api.result(Answer.perform_async({"a": dt.date(2026, 1, 1)})) == {
            "a": dt.date(2026, 1, 1)
        }
        with pytest.raises(NotTrackedError):
            api.result(Append.perform_async("a"))
        with pytest.raises(NoResultError):
            api.result(Followed.perform_async("a"))
        assert api.cancel("whatever") == "ended"


def test_cancelling_in_fake_mode_takes_the_job_away():
    with testing.fake() as jobs:
        kept, gone = str(Append.perform_async("a")), str(Answer.perform_async("b"))
        assert api.cancel(gone) == "removed"
        assert [each["jid"] for each in jobs.jobs()] == [kept]
        with pytest.raises(JobCancelled):
            api.result(gone)
        assert api.cancel(gone) == "ended"


def test_a_job_hears_that_it_is_cancelled_when_it_reports():
    told: list[object] = []
    wanted: list[bool] = [False]
    context = JobContext(
        {"jid": "a"},
        1,
        listeners=(lambda _, each: told.append(each),),
        cancellers=(lambda _: wanted[0],),
    )
    context.at(150, "far")
    assert told == [{"pct": 100.0, "message": "far"}]
    odd: list[Any] = ["5", None, True, float("nan")]
    for wrong in odd:
        with pytest.raises(TypeError, match="a number from 0 to 100"):
            context.at(wrong)
    wanted[0] = True
    assert context.cancelled
    with pytest.raises(JobCancelled, match="a was cancelled"):
        context.at(1)
    assert len(told) == 1


def test_without_the_features_the_names_are_not_there(monkeypatch):
    monkeypatch.setattr(api, "_OF_FEATURES", {"status": "no_such_part"})
    with pytest.raises(AttributeError, match="belongs to a feature that is not there"):
        api.__getattr__("status")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        api.__getattr__("nonsense")
