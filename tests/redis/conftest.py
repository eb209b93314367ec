"""Fixtures of several tests without processes.

What belongs to a feature is imported late: the core's tests also run without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


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
