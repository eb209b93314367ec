"""Fixtures of the tests with real processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from tests.process.odd import Board


@pytest.fixture
def board(redis_client: redis.Redis) -> Board:
    """What lies in the test's Redis."""
    return Board(redis_client)


@pytest.fixture
def no_renames(redis_client: redis.Redis) -> Iterator[None]:
    """Redis forbids renames, so workers cannot free a key of the wrong type by themselves."""
    client: Any = redis_client
    client.execute_command("ACL", "SETUSER", "default", "-rename")
    yield
    client.execute_command("ACL", "SETUSER", "default", "+rename")
