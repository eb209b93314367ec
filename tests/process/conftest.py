"""Fixtures of the tests with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.process.odd import Board
from tests.support.needs import not_here
from tests.support.project import Journal
from tests.support.site import Site
from tests.support.worker import ROOT


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


@pytest.fixture
def database(tmp_path: Path, journal: object) -> dict[str, str]:
    """A file with the tables; what a worker needs in its environment."""
    env = {"COGWORKER_TEST_DB": str(tmp_path / "db.sqlite3")}
    subprocess.run(
        [sys.executable, "-m", "django", "migrate", "-v0"],
        env={
            **os.environ,
            **env,
            "DJANGO_SETTINGS_MODULE": "tests.project.settings",
            "COGWORKER_REDIS_URL": "redis://localhost:1/0",
            "PYTHONPATH": str(ROOT),
        },
        check=True,
    )
    return env


@pytest.fixture
def site(tmp_path: Path, redis_url: str, journal: Journal) -> Iterator[Site]:
    """A project in a folder, to be edited while it runs."""
    if sys.platform != "linux":
        not_here("looks at /proc")
    site = Site(tmp_path / "site", {**journal.env, "COGWORKER_REDIS_URL": redis_url})
    yield site
    site.close()
