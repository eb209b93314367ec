"""Context: what travels with a job, what it finds when it runs, and that nothing of it stays."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.utils import timezone, translation

from django_cogworker import Job
from django_cogworker.client import push
from django_cogworker.exceptions import ArgumentError, ConfigurationError, InvalidPayload
from django_cogworker.features.context.checks import check_context
from django_cogworker.jobs.masking import visible_payload
from django_cogworker.testing import fake, inline
from tests.guests.context import request_id, tenant

VARIABLES = {"request": "tests.guests.context.request_id", "tenant": "tests.guests.context.tenant"}


def surroundings() -> dict[str, Any]:
    return {
        "language": translation.get_language(),
        "zone": str(timezone.get_current_timezone()),
        "request": request_id.get(None),
        "tenant": tenant.get(),
    }


OUTSIDE = {"language": "en-us", "zone": "UTC", "request": None, "tenant": "nobody"}


class Look(Job):
    def perform(self) -> dict[str, Any]:
        return surroundings()


class LookAsync(Job):
    async def perform(self) -> dict[str, Any]:
        return surroundings()


class Outer(Job):
    def perform(self) -> None:
        Look.perform_async()


class Fails(Job):
    def perform(self) -> float:
        return 1 / 0


seen: list[Any] = []


class Sees(Job):
    def perform(self) -> None:
        seen.append(surroundings())


@pytest.fixture(autouse=True)
def variables(settings):
    settings.COGWORKER_CONTEXT = VARIABLES


def enqueue(job: Any = Look) -> None:
    """From a request, so to say."""
    request, customer = request_id.set("r1"), tenant.set("acme")
    with translation.override("de"), timezone.override("Europe/Paris"):
        job.perform_async()
    tenant.reset(customer)
    request_id.reset(request)


INSIDE = {"language": "de", "zone": "Europe/Paris", "request": "r1", "tenant": "acme"}


@pytest.mark.parametrize("job", [Look, LookAsync])
def test_a_job_finds_what_surrounded_its_call_and_leaves_nothing_behind(job):
    with fake():
        enqueue(job)
        assert surroundings() == OUTSIDE
        assert job.perform_one() == INSIDE
        assert surroundings() == OUTSIDE


def test_a_job_without_any_has_no_such_field_and_finds_what_is_usual():
    with fake():
        Look.perform_async()
        assert "context" not in Look.jobs[0]
        assert Look.perform_one() == OUTSIDE


def test_what_jobs_enqueue_inherits_it():
    with fake() as transport:
        enqueue(Outer)
        Outer.perform_one()
        assert surroundings() == OUTSIDE
        (payload,) = Look.jobs
        assert payload["context"] == {
            "language": "de",
            "time_zone": "Europe/Paris",
            "values": {"request": "r1", "tenant": "acme"},
        }
        assert transport.perform_one() == INSIDE


def test_it_is_gone_when_the_job_fails_too():
    with fake():
        enqueue(Fails)
        with pytest.raises(ZeroDivisionError):
            Fails.perform_one()
        assert surroundings() == OUTSIDE


def test_bulk_and_the_low_level_client_take_it_along():
    with fake(), translation.override("fr"):
        Look.perform_bulk([()] * 2)
        push({"class": Look})
        assert [each["context"] for each in Look.jobs] == [{"language": "fr"}] * 3


def test_a_bulk_is_looked_up_once(monkeypatch):
    asked: list[str | None] = []
    ask = translation.get_language

    def get_language() -> str | None:
        asked.append(ask())
        return asked[-1]

    monkeypatch.setattr(translation, "get_language", get_language)
    with fake():
        Look.perform_bulk([()] * 50)
        assert len(asked) == 1
        Look.perform_async()
        assert len(asked) == 2


def test_zones_without_a_name_travel_by_their_offset():
    with fake():
        for zone in (dt.timezone(dt.timedelta(hours=-3)), ZoneInfo("Asia/Tokyo")):
            with timezone.override(zone):
                Look.perform_async()
        assert [each["context"]["time_zone"] for each in Look.jobs] == [-10_800.0, "Asia/Tokyo"]
        assert [Look.perform_one()["zone"] for _ in range(2)] == ["UTC-03:00", "Asia/Tokyo"]


def test_language_and_zone_can_be_left_at_home(settings):
    settings.COGWORKER_CONTEXT = {"language": False, "time_zone": False}
    with fake():
        enqueue()
        assert "context" not in Look.jobs[0]


def test_values_of_tagged_types_come_back_as_them():
    found = uuid.uuid4()
    token = request_id.set((found, None))
    with fake():
        Look.perform_async()
        request_id.reset(token)
        assert Look.perform_one()["request"] == (found, None)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1j, r"COGWORKER_CONTEXT\['tenant'\]\['x'\]\[0\] is a builtins\.complex"),
        (object(), r"\['x'\]\[0\] is a builtins\.object"),
        (
            User.from_db("default", ["id"], [1]),
            r"COGWORKER_CONTEXT\['tenant'\] \(tenant\) .*its key",
        ),
    ],
    ids=["complex", "object", "model"],
)
def test_a_value_that_cannot_travel_is_an_error_of_the_call_that_names_it(value, words):
    token = tenant.set({"x": [value]})
    try:
        with fake() as transport, pytest.raises(ArgumentError, match=words):
            Look.perform_async()
        assert transport.jobs() == []
    finally:
        tenant.reset(token)


def test_what_a_worker_does_not_list_stays_unread(settings):
    with fake():
        enqueue()
        settings.COGWORKER_CONTEXT = {"language": False, "tenant": VARIABLES["tenant"]}
        assert Look.perform_one() == {**OUTSIDE, "zone": "Europe/Paris", "tenant": "acme"}


@pytest.mark.parametrize("junk", [3, "x", [1], {"values": 3}, {"time_zone": "Moon/Crater"}])
def test_junk_is_the_jobs_failure(junk):
    with fake():
        push({"class": Look, "context": junk})
        with pytest.raises((InvalidPayload, LookupError)):
            Look.perform_one()
    assert surroundings() == OUTSIDE


def test_sensitive_values_are_masked_where_the_payload_is_shown():
    payload = {"class": "x", "context": {"language": "de", "values": {"token": "t", "tenant": "a"}}}
    assert visible_payload(payload)["context"] == {
        "language": "de",
        "values": {"token": "***", "tenant": "a"},
    }


def test_inline_jobs_have_it_as_well():
    seen.clear()
    with inline():
        enqueue(Sees)
    assert seen == [INSIDE]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("tests.guests.context.nothing", "names 'tests.guests.context.nothing': .*nothing"),
        ("tests.nowhere.variable", "names 'tests.nowhere.variable': .*nowhere"),
        ("tests.guests.context.not_a_variable", "no contextvars.ContextVar but a str"),
    ],
)
def test_a_path_that_leads_to_no_variable_is_told_by_the_check_and_by_the_call(
    settings, path, words
):
    settings.COGWORKER_CONTEXT = {"x": path}
    (found,) = check_context()
    assert found.id == "django_cogworker.E160"
    with fake(), pytest.raises(ConfigurationError, match=words):
        Look.perform_async()
    settings.COGWORKER_CONTEXT = VARIABLES
    assert check_context() == []
    settings.COGWORKER_CONTEXT = 3
    assert check_context() == []
