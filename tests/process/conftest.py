"""Fixtures of the tests with real processes."""

from __future__ import annotations

import pytest
import redis

from tests.process.odd import Board


@pytest.fixture
def board(redis_client: redis.Redis) -> Board:
    """What lies in the test's Redis."""
    return Board(redis_client)
