"""Unique jobs in real worker processes: kills, stops, the command line."""

from __future__ import annotations

import io
import json
import signal

import pytest
from django.core.management import CommandError, call_command

from tests.settings import INSTALLED_APPS
from tests.support.waiting import wait_until
from tests.uniquejobs.jobs import Executed, Fails, KillsAlone, KillsOnce, Waiting

CONF = {"INSTALLED_APPS": [*INSTALLED_APPS, "tests.uniquejobs"]}
LOCKS = "cogworker:unique:lock:*"


@pytest.mark.parametrize("job", [KillsOnce, KillsAlone])
def test_sk12_hu2_the_lock_survives_a_killed_worker_with_its_job(
    start_worker, journal, redis_client, job
):
    """SK-12, HU-2, E48"""
    worker = start_worker("-c", "1", conf=CONF)
    jid = job.perform_async("a")
    journal.wait_for("a 1")
    (lock,) = redis_client.scan_iter(LOCKS)
    worker.signal(signal.SIGKILL)
    worker.wait()
    assert redis_client.get(lock) == str(jid).encode()
    assert (KillsOnce.perform_async("a") is None) is (job is KillsOnce)
    start_worker("-c", "1", conf=CONF)
    journal.wait_for("a 2")
    wait_until(lambda: not redis_client.exists(lock))


@pytest.mark.usefixtures("no_renames")
def test_the_lock_of_a_retry_that_others_had_to_file_lasts_for_its_delay(
    start_worker, journal, redis_client, board
):
    """C24, H110"""
    worker = start_worker("-c", "1", conf=CONF)
    worker.wait_for_line("works as")
    redis_client.set("cogworker:retry", "text")
    jid = Fails.perform_async("retry")
    worker.wait_for_line("Settling a job failed")
    worker.signal(signal.SIGKILL)
    worker.wait()
    redis_client.delete("cogworker:retry")
    start_worker("-c", "1", conf=CONF)
    board.retrying(jid)
    (lock,) = redis_client.scan_iter(LOCKS)
    assert redis_client.ttl(lock) > 86_400 + 9_000


def test_a_stop_puts_the_job_back_with_its_lock(start_worker, journal, redis_client):
    worker = start_worker("-c", "1", conf={**CONF, "COGWORKER_SHUTDOWN_TIMEOUT": 0.1})
    jid = Waiting.perform_async("w")
    journal.wait_for("started w")
    (lock,) = redis_client.scan_iter(LOCKS)
    redis_client.expire(lock, 50)
    assert worker.stop() == 0
    assert redis_client.llen("cogworker:queue:default") == 1
    assert redis_client.get(lock) == str(jid).encode()
    assert 500 < redis_client.ttl(lock) <= 600
    assert Waiting.perform_async("w") is None


def test_a_stop_frees_the_lock_that_a_job_has_while_it_runs(start_worker, journal, redis_client):
    worker = start_worker("-c", "1", conf={**CONF, "COGWORKER_SHUTDOWN_TIMEOUT": 0.1})
    KillsAlone.perform_async("a")
    journal.wait_for("a 1")
    assert worker.stop() == 0
    assert list(redis_client.scan_iter(LOCKS)) == []


def test_the_command_lists_and_releases_locks(redis_url):
    """PR-11"""
    jid = Executed.perform_async("a")
    out = io.StringIO()
    call_command("cogworker", "locks", "--json", stdout=out)
    (row,) = json.loads(out.getvalue())
    assert row["jid"] == jid
    assert row["class"] == "tests.uniquejobs.jobs.Executed"
    call_command("cogworker", "release", row["key"], stdout=out)
    assert out.getvalue().endswith("Released.\n")
    assert Executed.perform_async("a")
    with pytest.raises(CommandError, match="no lock 'nonsense'"):
        call_command("cogworker", "release", "nonsense")
