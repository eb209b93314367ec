"""Fixtures for everybody, and the rule that a skip is a failure where `COGWORKER_CI` is set.

* `redis_server`: one real server for the whole run. Shared, so never stop, kill or pause it; a
  test that does such things starts a server of its own with `make_redis_server`.
* `redis_url`: its address, database emptied, and `COGWORKER_REDIS` set to it.
* `redis_client`: a client of the tests' own for it, to look at what is really there.
* `make_proxy`, `journal`, `start_worker`: see `tests/support`.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import redis
from django.utils import timezone, translation

from tests.support.needs import in_ci, may_be_skipped
from tests.support.project import Journal
from tests.support.proxy import RedisProxy
from tests.support.redis_server import RedisServer
from tests.support.worker import WorkerProcess

# A shell has what it starts with `&` ignore interrupts, and the programs under test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The type checkers run in an environment of their own (tox -e types).
collect_ignore_glob = [] if find_spec("mypy") else ["typing/*"]


# -- skips


def _skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    longrepr = report.longrepr
    return str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not in_ci() or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = _skip_reason(report)
    if not may_be_skipped(reason):
        report.outcome = "failed"
        report.longrepr = f"skipped, though this machine should run everything: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _forbid_skip(report)
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    # `run.py test tests/unit/test_x.py` may name a file without a smoke test.
    smoke = os.environ.get("COGWORKER_SUITE") == "smoke"
    if smoke and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


# -- what tests leave behind


@pytest.fixture(autouse=True)
def _own_language() -> Iterator[None]:
    """A page that was drawn in a viewer's language leaves it active in this thread."""
    yield
    translation.deactivate()
    timezone.deactivate()


# -- servers


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
def make_redis_server() -> Iterator[Callable[..., RedisServer]]:
    """Start further servers: `make_redis_server(appendonly="yes", unix=True)`."""
    servers: list[RedisServer] = []

    def make(**options: Any) -> RedisServer:
        server = RedisServer(**options)
        servers.append(server)
        return server.start()

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def redis_url(redis_server: RedisServer, settings: Any) -> str:
    client = redis_server.client()
    # A command of an earlier test that is still under way somewhere must not land in this one.
    client.client_kill_filter(_type="normal", skipme=True)
    client.flushall()
    client.close()
    # By the fixture that tests change other settings with: nested overrides that end in another order leak.
    settings.COGWORKER_REDIS = redis_server.url
    return redis_server.url


@pytest.fixture
def redis_client(redis_server: RedisServer, redis_url: str) -> Iterator[redis.Redis]:
    client = redis_server.client()
    yield client
    client.close()


@pytest.fixture
def make_proxy() -> Iterator[Callable[[str], RedisProxy]]:
    """Put a proxy in front of a server: `make_proxy(redis_url)`."""
    proxies: list[RedisProxy] = []

    def make(target_url: str) -> RedisProxy:
        proxy = RedisProxy(target_url)
        proxies.append(proxy)
        return proxy

    yield make
    for proxy in proxies:
        proxy.close()


# -- workers


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    """What the jobs of `tests.project` write, also those that run in this process."""
    directory = tmp_path / "journal"
    directory.mkdir()
    journal = Journal(directory)
    for name, value in journal.env.items():
        monkeypatch.setenv(name, value)
    return journal


@pytest.fixture
def start_worker(redis_url: str, journal: Journal) -> Iterator[Callable[..., WorkerProcess]]:
    """Start workers on the test's Redis: `start_worker("-c", "2", conf={…})`.

    `conf` holds further Django settings, `env` further variables, `url` another Redis. All are
    killed at the end, and what they wrote is shown where the test failed.
    """
    workers: list[WorkerProcess] = []

    def start(
        *args: str,
        conf: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
        url: str = redis_url,
        **options: Any,
    ) -> WorkerProcess:
        worker = WorkerProcess(
            *args,
            env={
                **journal.env,
                "COGWORKER_REDIS_URL": url,
                "COGWORKER_TEST_SETTINGS": json.dumps(conf or {}),
                **(env or {}),
            },
            **options,
        )
        workers.append(worker)
        return worker.start()

    yield start
    for worker in workers:
        worker.close()
    for number, worker in enumerate(workers, 1):
        print(f"-- worker {number}: {' '.join(worker.argv)}: exit {worker.returncode}")
        print(worker.output)
