"""Periodic entries as they are written: settings, the decorator, checks, test modes."""

from __future__ import annotations

from typing import Any

import pytest

from django_cogworker import Job, job, periodic
from django_cogworker.api import PeriodicSet
from django_cogworker.checks import check_settings
from django_cogworker.exceptions import InvalidPeriodicEntry
from django_cogworker.features.periodic import entries
from django_cogworker.features.periodic.checks import check_entries
from django_cogworker.features.periodic.ticker import Ticker
from django_cogworker.testing import fake, inline
from tests.project.jobs import Append, Slot

APPEND = "tests.project.jobs.Append"
GOOD = {"job": APPEND, "cron": "0 3 * * *", "args": ["x"]}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"cron": "61 * * * *"}, "out of range"),
        ({"cron": None}, "a cron line such as"),
        ({"tz": "Europe/Pari"}, "no time zone"),
        ({"job": "tests.project.jobs.Apend"}, "Did you mean 'tests.project.jobs.Append'"),
        ({"args": []}, "takes"),
        ({"args": "x"}, "a list"),
        ({"args": [object()]}, "args"),
        ({"kwargs": []}, None),
        ({"kwargs": 3}, "a dict"),
        ({"catch_up": "never"}, "'once' or 'skip' or 'all'"),
        ({"limit": 0}, "from 1 to 1000"),
        ({"run_at_first_start": 1}, "True or False"),
        ({"unique_run": "yes"}, "True or False"),
        ({"catchup": "once"}, "Did you mean 'catch_up'"),
        ({"queue": "a b"}, "queue"),
        ({"retry": -1}, "retry"),
    ],
)
def test_the_check_names_the_entry_and_what_is_wrong(settings, given, says):
    """TQ-8"""
    settings.COGWORKER_PERIODIC = {"nightly": {**GOOD, **given}}
    found = check_entries()
    if says is None:
        assert found == []
        return
    (error,) = found
    assert error.id == "django_cogworker.E130"
    assert "nightly" in error.msg
    assert says in error.msg


@pytest.mark.parametrize("given", [3, ["a"], {"a": "0 3 * * *"}, {1: GOOD}])
def test_the_setting_has_a_shape(settings, given):
    settings.COGWORKER_PERIODIC = given
    (error,) = check_settings()
    assert error.id == "django_cogworker.E023"
    assert check_entries() == []


@pytest.mark.parametrize(
    ("line", "warns"),
    [
        ("* */2 * * *", True),
        ("* 3 * * *", True),
        ("* * 3 * * *", True),
        ("0 * 3 * * *", True),
        ("* * * * *", False),
        ("0 */2 * * *", False),
        ("0-59 3 * * *", False),
    ],
)
def test_every_minute_by_mistake_is_a_warning(settings, line, warns):
    """HU-5"""
    settings.COGWORKER_PERIODIC = {"often": {**GOOD, "cron": line}}
    assert [each.id for each in check_entries()] == ["django_cogworker.W030"] * warns


@pytest.mark.parametrize("use_tz", [True, False])
def test_the_zone_is_that_of_the_project_unless_the_entry_names_one(settings, use_tz):
    """HU-5 Q2-5"""
    settings.USE_TZ, settings.TIME_ZONE = use_tz, "Asia/Tokyo"
    settings.COGWORKER_PERIODIC = {"a": GOOD, "b": {**GOOD, "tz": "Europe/Paris"}}
    assert [each.tz for each in PeriodicSet()] == ["Asia/Tokyo", "Europe/Paris"]
    assert PeriodicSet()["a"].runs_after(0, 2) == [18 * 3600, 42 * 3600]


@pytest.fixture
def forget() -> Any:
    names: list[str] = []
    yield names.append
    for each in names:
        entries.withdraw(each)


def test_the_decorator_makes_entries_of_classes_and_functions(forget, settings):
    settings.COGWORKER_PERIODIC = {}
    periodic("0 9 * * *", name="mine", tz="Europe/Paris", queue="low", limit=3)(Slot)
    forget("mine")
    (entry,) = PeriodicSet()
    assert (entry.name, entry.job, entry.tz) == ("mine", Slot.job_name, "Europe/Paris")
    assert entry.entry.payload()["queue"] == "low"
    settings.COGWORKER_PERIODIC = {"mine": GOOD}
    (entry,) = PeriodicSet()
    assert entry.job == APPEND, "the settings count"
    with pytest.raises(InvalidPeriodicEntry, match="another name="):
        periodic("0 9 * * *", name="mine")(Append)


def test_the_decorator_refuses_what_is_no_job():
    def plain() -> None: ...

    class Base(Job):
        """No perform."""

    for each in (plain, Base):
        with pytest.raises(InvalidPeriodicEntry, match="@job below @periodic"):
            periodic("0 9 * * *")(each)
    assert callable(job)


def test_nothing_is_asked_of_redis_in_the_test_modes(settings):
    """No server listens at the address of these tests."""
    settings.COGWORKER_PERIODIC = {"a": GOOD}
    with fake() as collected:
        assert PeriodicSet()["a"].run_now()
        assert [each["args"] for each in collected.jobs()] == [["x"]]
    settings.COGWORKER_TESTING = "fake"
    ticker = Ticker()
    ticker.tick()
    assert ticker._published is None


def test_run_now_runs_in_inline_mode(settings, journal):
    settings.COGWORKER_PERIODIC = {"a": GOOD}
    with inline():
        PeriodicSet()["a"].run_now()
    assert journal.count("x") == 1
