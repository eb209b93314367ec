"""Fixtures of several tests without processes. A file may have its own under these names.

What belongs to a feature is imported late: the core's tests also run without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from django_cogworker.conf import get_config
from django_cogworker.store.plain import PlainVerbs
from django_cogworker.store.store import Store, get_store
from django_cogworker.worker import surroundings
from tests.redis.lost import Fleet


@pytest.fixture(params=["scripts", "basic"])
def store(request: pytest.FixtureRequest, redis_url: str) -> Store:
    """Once with scripts and once without."""
    store = get_store()
    if request.param == "basic":
        store._verbs = PlainVerbs(store.client, store.keys, get_config())
    return store


@pytest.fixture
def fleet(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """What workers left, for recoverers that run death hooks in this process."""
    # There is no database to be tidied around them.
    for each in ("before_job", "after_job"):
        monkeypatch.setattr(surroundings, each, lambda *_: None)
    return Fleet(get_store())


@pytest.fixture
def given(redis_url: str, settings: Any) -> Callable[..., Any]:
    """Sets the periodic entries; returns the one of the first name."""
    from django_cogworker.features.periodic import entries

    def give(**found: Any) -> Any:
        settings.COGWORKER_PERIODIC = found
        return entries.find(next(iter(found)))

    return give


@pytest.fixture
def redis_time(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Redis's clock, as periodic entries read it; see there."""
    from tests.redis.slots import RedisTime

    return RedisTime(monkeypatch)
