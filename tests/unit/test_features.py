"""A feature as a guest: what it declares takes part, and what it leaves out costs nothing."""

from __future__ import annotations

import pytest

from django_cogworker.exceptions import InvalidOption, UnknownOption
from django_cogworker.features import registry
from django_cogworker.features.base import Feature
from django_cogworker.jobs.options import Option, no_options
from django_cogworker.testing import fake
from tests.project.jobs import Append


class Silent(Feature):
    """Takes part in nothing."""

    name = "silent"


def colour(value: object) -> str:
    if value not in ("red", "blue"):
        raise ValueError("'red' or 'blue'")
    return str(value)


class Colours(Feature):
    """Brings an option and a client middleware."""

    name = "colours"
    options = (Option("colour", "red", colour, lambda value: {"colour": value}),)

    @staticmethod
    def stamp(push):
        def stamped(payload):
            payload["stamped"] = True
            return push(payload)

        return stamped

    client_middleware = (stamp,)


@pytest.fixture
def added(settings):
    """Adds features for one test; the chain is built anew before and after."""
    present = []

    def add(feature):
        registry.add(feature)
        present.append(feature)
        settings.COGWORKER_CONCURRENCY = 10
        return feature

    yield add
    for each in present:
        registry.remove(each)


@pytest.mark.parametrize(
    "method", [each for each in vars(Feature) if callable(vars(Feature)[each]) and each[0] != "_"]
)
def test_a_feature_that_takes_no_part_is_asked_nothing(added, method):
    before = registry.taking_part(method)
    added(Silent())
    assert registry.taking_part(method) == before


def test_every_hook_that_the_worker_asks_for_is_one_of_a_feature():
    """The worker is built with each of them; one that `Feature` lacks would stop every worker."""
    for method in ("pushed", "settled", "recovered", "beat", "tick"):
        assert callable(getattr(Feature, method))


def test_an_option_of_a_feature_is_known_checked_and_travels(added):
    with pytest.raises(UnknownOption):
        no_options().merged({"colour": "blue"}, "Some.job")
    added(Colours())
    assert no_options().merged({"colour": "blue"}, "Some.job").fields["colour"] == "blue"
    with pytest.raises(InvalidOption, match="'red' or 'blue'"):
        no_options().merged({"colour": "green"}, "Some.job")


def test_a_client_middleware_of_a_feature_sees_every_push(added):
    added(Colours())
    with fake() as jobs:
        Append.perform_async("a")
        assert jobs.jobs()[0]["stamped"] is True


def test_a_removed_feature_leaves_nothing(added):
    feature = added(Colours())
    registry.remove(feature)
    try:
        with pytest.raises(UnknownOption):
            no_options().merged({"colour": "blue"}, "Some.job")
    finally:
        registry.add(feature)
