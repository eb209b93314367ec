"""Health of real workers: probes over HTTP and by command, stuck loops, the watchdog."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from django_cogworker.api import losses
from tests.oddjobs.jobs import OneShot
from tests.oddjobs.stuck import HoldTheInterpreter
from tests.process.odd import KEYS, ODD
from tests.project.jobs import Append
from tests.support.redis_server import free_port
from tests.support.waiting import wait_until
from tests.support.worker import ROOT, WorkerProcess

#: A loop has to stand still for as long as makes it count as stuck.
pytestmark = pytest.mark.timeout(150)

#: A beat a second; the worker knows the handler that blocks and the job that holds the interpreter.
STUCK: dict[str, Any] = {
    **ODD,
    "COGWORKER_ORPHAN_THRESHOLD": 6,
    "COGWORKER_DEATH_HANDLERS": ["tests.oddjobs.stuck.blocking_handler"],
}
DOOR = ("--health-port", "127.0.0.1:0")


def port_of(worker: WorkerProcess) -> int:
    return int(worker.wait_for_line(r"answered on port (\d+)")[1])


def ask(port: int, path: str) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def status(port: int, path: str) -> int:
    return ask(port, path)[0]


def healthcheck(worker: WorkerProcess, *args: str) -> subprocess.CompletedProcess[str]:
    """The probe, run as a container's runtime does."""
    return subprocess.run(
        [sys.executable, "-m", "django", "cogworker", "healthcheck", *args],
        cwd=ROOT,
        env=worker.env,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Workers and probes of this test see each other alone."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_a_worker_is_live_and_ready_until_it_is_quiet(start_worker, journal):
    worker = start_worker("-c", "1", *DOOR)
    port = port_of(worker)
    wait_until(lambda: status(port, "/ready") == 200)
    code, verdict = ask(port, "/live")
    assert code == 200
    (row,) = verdict["workers"]
    assert row["pid"] == worker.pid
    wait_until(lambda: healthcheck(worker, "--ready").returncode == 0, timeout=20)
    worker.signal(signal.SIGTSTP)
    wait_until(lambda: status(port, "/ready") == 503)
    assert status(port, "/live") == 200
    wait_until(lambda: healthcheck(worker, "--ready").returncode == 1, timeout=20)
    live = healthcheck(worker, "--json")
    assert live.returncode == 0, live.stderr
    (shown,) = json.loads(live.stdout)
    assert shown["live"] is True
    assert shown["ready"] is False
    assert worker.stop() == 0
    gone = healthcheck(worker)
    assert gone.returncode == 1
    assert "No worker" in gone.stderr


def test_a_worker_that_waits_for_redis_is_live_and_not_ready(start_worker, journal):
    worker = start_worker("-c", "1", *DOOR, url="redis://127.0.0.1:1/0")
    port = port_of(worker)
    worker.wait_for_line("is away")
    assert status(port, "/live") == 200
    assert status(port, "/ready") == 503
    wait_until(lambda: healthcheck(worker).returncode == 0, timeout=20)
    assert healthcheck(worker, "--ready").returncode == 1
    assert worker.stop() == 0


def test_redis_being_away_makes_no_worker_ill(start_worker, journal, make_redis_server):
    """CE-1, the other way round: the loops go on trying, and the probe does not restart the worker."""
    server = make_redis_server()
    worker = start_worker("-c", "1", *DOOR, url=server.url)
    port = port_of(worker)
    wait_until(lambda: status(port, "/ready") == 200)
    server.pause()
    worker.wait_for_line("is away", timeout=30)
    assert status(port, "/live") == 200
    server.resume()
    assert worker.stop() == 0


def test_a_frozen_worker_is_not_live(start_worker, journal):
    worker = start_worker("-c", "1")
    wait_until(lambda: healthcheck(worker).returncode == 0, timeout=20)
    worker.pause()
    wait_until(lambda: "is stuck" in healthcheck(worker, "--max-age", "2").stderr, timeout=20)
    worker.resume()
    wait_until(lambda: healthcheck(worker, "--max-age", "8").returncode == 0, timeout=20)
    assert worker.stop() == 0


def test_the_supervisor_answers_for_all_its_workers(start_worker, journal):
    port = free_port()
    supervisor = start_worker("--processes", "2", "-c", "1", "--health-port", f"127.0.0.1:{port}")
    supervisor.wait_for_line("answered on port")
    wait_until(lambda: status(port, "/ready") == 200, timeout=20)
    code, verdict = ask(port, "/live")
    pids = [each["pid"] for each in verdict["workers"]]
    assert code == 200
    assert len(set(pids) - {supervisor.pid}) == 2
    for pid in pids:
        inodes = {os.readlink(each.path) for each in os.scandir(f"/proc/{pid}/fd")}
        assert not inodes & listening(supervisor.pid), "a child holds the door open"
    os.kill(pids[0], signal.SIGTSTP)
    wait_until(lambda: status(port, "/ready") == 503)
    assert [each["ready"] for each in ask(port, "/live")[1]["workers"]] == [False, True]
    supervisor.signal(signal.SIGUSR2)
    supervisor.wait_for_line("All 2 workers run the new code", timeout=60)
    assert port_of(supervisor) == port or True
    wait_until(lambda: status(port, "/ready") == 200)
    assert not {each["pid"] for each in ask(port, "/live")[1]["workers"]} & set(pids)
    assert supervisor.stop(timeout=60) == 0


def listening(pid: int) -> set[str]:
    """The sockets on which the process listens."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listeners = {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"}
    return listeners & {os.readlink(each.path) for each in os.scandir(f"/proc/{pid}/fd")}


def test_a_stuck_loop_is_told_with_its_stack_and_the_watchdog_ends_the_worker(
    start_worker, journal, board
):
    """DR-3: a death handler that never returns holds up recovery; the supervisor starts another."""
    OneShot.perform_async("shot")
    killed = start_worker("-c", "1", conf=STUCK)
    journal.wait_for("started shot")
    supervisor = start_worker("--processes", "2", "-c", "1", "--watchdog", "15", *DOOR, conf=STUCK)
    port = port_of(supervisor)
    wait_until(lambda: status(port, "/ready") == 200, timeout=20)
    killed.kill()
    journal.wait_for("handler blocks", timeout=30)
    supervisor.wait_for_line(r"Stuck: the loop recovery has not turned", timeout=40)
    supervisor.wait_for_line(r"blocking_handler")
    supervisor.wait_for_line(r"ends itself \(--watchdog\)")
    supervisor.wait_for_line(r"was lost \(exit code 70\)")
    wait_until(lambda: [each["how"] for each in losses()] == ["exit code 70"], timeout=20)
    wait_until(lambda: status(port, "/ready") == 200, timeout=20)
    Append.perform_async("after")
    journal.wait_for("after")
    board.wait_until_settled()
    assert supervisor.stop() == 0


def test_a_stuck_loop_makes_a_worker_ill_until_it_turns_again(start_worker, journal):
    OneShot.perform_async("shot")
    killed = start_worker("-c", "1", conf=STUCK)
    journal.wait_for("started shot")
    worker = start_worker("-c", "1", *DOOR, conf=STUCK)
    port = port_of(worker)
    wait_until(lambda: status(port, "/ready") == 200)
    killed.kill()
    journal.wait_for("handler blocks", timeout=30)
    wait_until(lambda: healthcheck(worker, "--max-age", "3").returncode == 1, timeout=30)
    wait_until(lambda: status(port, "/live") == 503, timeout=60)
    assert list(ask(port, "/live")[1]["workers"][0]["stuck"]) == ["recovery"]
    worker.wait_for_line(r"Stuck: the loop recovery", timeout=20)
    journal.release("handler")
    worker.wait_for_line(r"The loop recovery turns again")
    assert status(port, "/ready") == 200
    assert worker.stop() == 0


def test_the_watchdog_ends_a_worker_whose_interpreter_is_held(start_worker, journal, board):
    """CE-1, DR-4: C code that lets no thread run stops every loop, and the watchdog's thread too."""
    HoldTheInterpreter.perform_async("held", 300)
    worker = start_worker("-c", "1", "--watchdog", "15", conf=STUCK)
    journal.wait_for("holding held")
    assert worker.wait(timeout=60) == 1
    worker.wait_for_line(r"Timeout \(0:00:15\)")
    worker.wait_for_line(r"tests/oddjobs/stuck.py.* in perform")
    start_worker("-c", "1", conf=STUCK)
    journal.wait_for("finished held", timeout=30)
    board.wait_until_settled()
    assert board.client.hlen(KEYS.holders) == 1


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--watchdog", "3", "--watchdog is 3"),
        ("--watchdog", "nan", "--watchdog is nan"),
        ("--health-port", "http", "--health-port is http"),
        ("--health-port", "70000", "--health-port is 70000"),
        ("--health-port", "192.0.2.1:80", "cannot be opened"),
    ],
)
def test_odd_options_are_refused(start_worker, option, value, words):
    worker = start_worker("-c", "1", option, value)
    assert worker.wait() == 1
    assert words in worker.output
