"""Workers and a PostgreSQL: restarts, forks, too few connections, idle ones, pools."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.databases.apps import PRELOAD_VARIABLE
from tests.databases.jobs import Ask, Queries, Tell, TellAsync
from tests.process.supervising import inodes, tcp_inodes, wait_for_workers
from tests.settings import INSTALLED_APPS
from tests.support.postgres import PostgresServer
from tests.support.project import Journal
from tests.support.waiting import wait_until
from tests.support.worker import ROOT

pytestmark = pytest.mark.timeout(120)

POOL = {"OPTIONS": {"pool": {"min_size": 0, "max_size": 10, "timeout": 10}}, "CONN_MAX_AGE": 0}


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


def conf(server: PostgresServer, **more: Any) -> dict[str, Any]:
    """Settings of a worker that knows the jobs of `tests/databases`, and asks that server."""
    return {
        "INSTALLED_APPS": [*INSTALLED_APPS, "tests.databases"],
        "DATABASES": {"default": server.setting(**more)},
    }


def done(journal: Journal) -> set[int]:
    return {int(line.split()[1]) for line in journal.lines() if line.startswith("done ")}


def failed(journal: Journal, *, since: float = 0.0) -> list[str]:
    """The errors of jobs that began after that moment."""
    split = [line.split(maxsplit=3) for line in journal.lines() if line.startswith("failed ")]
    return [error for _, _, begun, error in split if float(begun) > since]


@pytest.mark.parametrize("checked", [True, False], ids=["checked", "unchecked"])
@pytest.mark.parametrize(
    "kept",
    [{"CONN_MAX_AGE": 0}, {"CONN_MAX_AGE": 60}, {"CONN_MAX_AGE": None}, POOL],
    ids=["age 0", "age 60", "age None", "pool"],
)
def test_a_restart_of_the_database_loses_no_job(
    start_worker, journal, board, postgres, kept, checked
):
    """CE-6, DR-6, HU-3: jobs that meet the outage fail and run again; with health checks none fails after it,
    neither under load nor after a restart that nobody noticed.
    """
    Ask.perform_bulk([(number, 0.01) for number in range(1_000)])
    worker = start_worker("-c", "10", conf=conf(postgres, **kept, CONN_HEALTH_CHECKS=checked))
    wait_until(lambda: len(done(journal)) >= 200, timeout=40)
    postgres.restart()
    up = time.monotonic()
    wait_until(lambda: len(done(journal)) == 1_000, timeout=60)
    assert worker.alive
    assert failed(journal)
    fresh = checked or kept == {"CONN_MAX_AGE": 0}
    if fresh:
        assert failed(journal, since=up) == []

    board.wait_until_settled()
    postgres.restart()
    up = time.monotonic()
    Ask.perform_bulk([(number, 0.05) for number in range(1_000, 1_040)])
    wait_until(lambda: len(done(journal)) == 1_040, timeout=40)
    assert (failed(journal, since=up) == []) == fresh
    board.wait_until_settled()
    assert board.all_dead() == []
    assert worker.stop() == 0


@pytest.mark.parametrize("kept", [{"CONN_MAX_AGE": None}, POOL], ids=["kept", "pool"])
def test_forked_workers_share_no_connection_with_each_other_or_the_supervisor(
    start_worker, journal, postgres, kept
):
    """CE-6: the app has asked the database while it was loaded, and so it is before each fork."""
    supervisor = start_worker(
        "--processes",
        "2",
        "-c",
        "2",
        conf=conf(postgres, **kept),
        env={PRELOAD_VARIABLE: "1"},
    )
    before = wait_for_workers(2)
    assert supervisor.output.count("started (fork)") == 2
    # Fork, and what the interpreter says about it where there are threads.
    assert "multi-threaded" not in supervisor.output
    Tell.perform_bulk([(f"n{number}",) for number in range(60)])
    journal.wait_for_lines(60)
    killed = before.pop()
    os.kill(killed, 9)
    wait_for_workers(2, other_than={killed})
    Tell.perform_bulk([(f"m{number}",) for number in range(60)])
    lines = journal.wait_for_lines(120)
    # Which process used which connection.
    owners: dict[str, set[str]] = {}
    for line in lines:
        _, pid, backend = line.split()
        owners.setdefault(backend, set()).add(pid)
    assert all(len(pids) == 1 for pids in owners.values())
    assert len({pid for pids in owners.values() for pid in pids}) >= 3
    assert str(supervisor.pid) not in {pid for pids in owners.values() for pid in pids}
    assert inodes(supervisor.pid) & tcp_inodes() == set()
    assert "failed" not in supervisor.output
    assert supervisor.stop() == 0


@pytest.mark.parametrize("age", [0, None])
def test_too_few_connections_cost_time_and_no_job(start_worker, journal, board, age):
    """DR-6: too many clients already."""
    with PostgresServer(max_connections=15) as server:
        Ask.perform_bulk([(number, 0.1) for number in range(100)])
        worker = start_worker("-c", "20", conf=conf(server, CONN_MAX_AGE=age))
        wait_until(lambda: len(done(journal)) == 100, timeout=60)
        board.wait_until_settled()
        errors = failed(journal)
        assert errors
        assert all("OperationalError" in each for each in errors)
        assert any("too many clients already" in each for each in errors)
        # The record of the failure says it too.
        assert re.search(r"Ask \w+ failed", worker.output)
        assert board.all_dead() == []
        assert worker.stop() == 0


def test_idle_connections_are_closed_when_they_reach_their_age(start_worker, journal, postgres):
    wait_until(lambda: postgres.clients() == 0)
    worker = start_worker("-c", "3", conf=conf(postgres, CONN_MAX_AGE=1))
    for _ in range(2):  # who has closed its own begins anew
        Tell.perform_bulk([(f"n{number}",) for number in range(20)])
        journal.wait_for_lines(20)
        assert 1 <= postgres.clients() <= 3
        wait_until(lambda: postgres.clients() == 0, timeout=10)
        journal.path.unlink()
    assert worker.stop() == 0


def test_so_is_the_one_of_coroutines(start_worker, journal, postgres):
    wait_until(lambda: postgres.clients() == 0)
    worker = start_worker("-c", "1", "--async-queues", "web", conf=conf(postgres, CONN_MAX_AGE=1))
    for _ in range(2):
        TellAsync.perform_bulk([(f"n{number}",) for number in range(20)])
        journal.wait_for_lines(20)
        assert postgres.clients() == 1
        wait_until(lambda: postgres.clients() == 0, timeout=10)
        journal.path.unlink()
    assert worker.stop() == 0


def test_kept_connections_end_with_the_worker_and_not_before(start_worker, journal, postgres):
    worker = start_worker("-c", "1", conf=conf(postgres, CONN_MAX_AGE=None))
    for number in range(20):
        Tell.perform_async(f"n{number}")
    backends = {line.split()[2] for line in journal.wait_for_lines(20)}
    assert len(backends) == 1
    assert postgres.clients() == 1
    assert worker.stop() == 0
    wait_until(lambda: postgres.clients() == 0)


def test_the_log_of_queries_does_not_grow_from_job_to_job(start_worker, journal, postgres):
    worker = start_worker(
        "-c", "1", "--noreload", conf={**conf(postgres, CONN_MAX_AGE=60), "DEBUG": True}
    )
    for _ in range(10):
        Queries.perform_async()
    assert set(journal.wait_for_lines(10)) == {"0 6"}
    assert worker.stop() == 0


def test_the_transaction_of_a_test_case_survives_jobs(postgres, tmp_path: Path):
    """DR-7, Q2-9, DT-9: where jobs run in the caller, its connection stays open, and its transaction too."""
    settings = tmp_path / "on_postgres.py"
    settings.write_text(
        "from tests.settings import *\n"
        f"DATABASES = {{'default': {postgres.setting()!r}}}\n"
        "INSTALLED_APPS = [*INSTALLED_APPS, 'tests.databases']\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "django", "test", "tests.databases.in_transaction"],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "on_postgres",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
        },
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ran.returncode == 0, ran.stderr
    assert "Ran 3 tests" in ran.stderr


def test_a_worker_says_once_what_is_unwise_about_its_connections(start_worker, postgres):
    pool = {"OPTIONS": {"pool": {"max_size": 10}}, "CONN_HEALTH_CHECKS": True}
    supervisor = start_worker("--processes", "2", "-c", "11", conf=conf(postgres, **pool))
    wait_for_workers(2)
    assert supervisor.stop() == 0
    assert supervisor.output.count("django_cogworker.W044") == 1
    plain = start_worker("-c", "10", conf=conf(postgres))
    plain.wait_for_line("works as")
    assert plain.stop() == 0
    assert "django_cogworker.W042" in plain.output
    assert "W044" not in plain.output
    silent = start_worker("-c", "10", "--skip-checks", conf=conf(postgres))
    silent.wait_for_line("works as")
    assert silent.stop() == 0
    assert "W042" not in silent.output
