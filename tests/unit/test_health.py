"""The health of workers: the verdict, the file for probes on the host, the door for probes over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from django_cogworker.worker.health import Health, Report, Verdict, judge
from django_cogworker.worker.health_door import MOST_CLIENTS, HealthDoor
from django_cogworker.worker.health_file import HealthFile, project_mark, read_reports

GOOD = Verdict(True, True, [{"pid": 1}])
BAD = Verdict(True, False, [{"pid": 1}])


def report(*, ready: bool = True, **ages: float) -> Report:
    now = time.monotonic()
    return Report(os.getpid(), "host:1:abc", ready, {name: now - age for name, age in ages.items()})


# -- the verdict


def test_a_worker_is_live_while_every_loop_has_turned_lately():
    assert judge([report(fetcher=1, heartbeat=29)]).live
    verdict = judge([report(fetcher=1, heartbeat=31)])
    assert not verdict.live
    assert not verdict.ready
    assert list(verdict.workers[0]["stuck"]) == ["heartbeat"]
    assert not judge([report(fetcher=3)], limit=2).live


def test_workers_are_judged_together():
    good, bad, quiet = report(main=0), report(main=100), report(main=0, ready=False)
    assert judge([good, good]).ready
    assert not judge([good, bad]).live
    verdict = judge([good, quiet])
    assert (verdict.live, verdict.ready) == (True, False)
    starting = judge([good, None])
    assert (starting.live, starting.ready) == (True, False)


def test_a_loop_counts_from_its_first_turn_to_its_end():
    health = Health(lambda: "me", lambda: True)
    turned = health.loop("fetcher")
    assert health.report().loops == {}
    turned()
    assert list(health.report().loops) == ["fetcher"]
    health.ended("fetcher")
    assert health.report().loops == {}


# -- the file


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def files(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file()]


def test_a_probe_reads_what_the_worker_wrote(own_folder):
    project = project_mark("redis at home", "cogworker:")
    file = HealthFile(project)
    first, second = report(fetcher=1), report(fetcher=0, ready=False)
    file.write(first)
    assert read_reports(project) == [first]
    file.write(second)
    assert read_reports(project) == [second]
    assert read_reports(project_mark("redis elsewhere", "cogworker:")) == []
    file.remove()
    assert read_reports(project) == []
    file.write(first)
    assert files(own_folder) == []


@pytest.mark.parametrize("by", ["a probe", "the next worker"])
def test_the_file_of_a_killed_worker_is_taken_away(own_folder, by):
    writes = (
        "import time; from django_cogworker.worker.health import Report; "
        "from django_cogworker.worker.health_file import HealthFile; "
        "HealthFile('p').write(Report(1, 'x', True, {})); print('written', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", writes],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(own_folder)},
    )
    assert process.stdout is not None
    process.stdout.readline()
    assert len(read_reports("p")) == 1
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert len(files(own_folder)) == 1
    if by == "a probe":
        assert read_reports("p") == []
    else:
        HealthFile("another project")
    assert files(own_folder) == []


def test_what_is_no_report_is_left_alone(own_folder, caplog):
    file = HealthFile("p")
    file.write(report())
    (own_file,) = files(own_folder)
    (own_file.parent / "p-bad.json").write_text('{"host": 1}')
    (own_file.parent / "p-worse.json").write_text("{")
    assert len(read_reports("p")) == 1
    assert caplog.text.count("is no report") == 2


def test_a_folder_that_cannot_be_written_to_is_told_once(own_folder, caplog):
    own_folder.joinpath(f"cogworker-health-{os.getuid()}").write_text("in the way")
    file = HealthFile("p")
    file.write(report())
    file.write(report())
    assert caplog.text.count("cannot be written") == 1


# -- the door


class Answering:
    """A door with a thread that serves it."""

    def __init__(self, door: HealthDoor) -> None:
        self.door = door
        self.verdict = GOOD
        threading.Thread(target=self._loop, daemon=True).start()

    def _loop(self) -> None:
        self.door.loop(lambda: self.verdict)

    def ask(self, path: str, method: str = "GET") -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.door.port, timeout=5)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            body = response.read()
            return response.status, json.loads(body) if body.startswith(b"{") else body
        finally:
            connection.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.door.port), timeout=5)


@pytest.fixture
def answering() -> Answering:
    return Answering(HealthDoor("127.0.0.1", 0))


def test_the_door_answers_for_live_and_ready(answering):
    assert answering.ask("/live") == (200, {"live": True, "ready": True, "workers": [{"pid": 1}]})
    assert answering.ask("/ready")[0] == 200
    answering.verdict = BAD
    assert answering.ask("/")[0] == 200
    assert answering.ask("/live?verbose=1")[0] == 200
    assert answering.ask("/ready/")[0] == 503
    assert answering.ask("/ready", "HEAD") == (503, b"")
    assert answering.ask("/other")[0] == 404
    assert answering.ask("/live", "POST")[0] == 501


def test_the_door_is_open_on_all_addresses_where_none_is_named():
    answering = Answering(HealthDoor("", 0))
    assert answering.ask("/live")[0] == 200


def test_slow_and_silent_clients_hold_up_nobody(answering):
    slow = answering.connect()
    slow.sendall(b"GET /live HT")
    silent = [answering.connect() for _ in range(5)]
    assert answering.ask("/live")[0] == 200
    slow.sendall(b"TP/1.0\r\n\r\n")
    assert slow.recv(100).startswith(b"HTTP/1.0 200")
    for each in (slow, *silent):
        each.close()


def test_clients_that_never_ask_are_sent_away(answering):
    silent = [answering.connect() for _ in range(MOST_CLIENTS + 3)]
    assert [each.recv(10) for each in silent] == [b""] * len(silent)
    assert answering.ask("/live")[0] == 200
    for each in silent:
        each.close()


def test_what_is_no_request_gets_an_error(answering):
    for text in (b"hello\r\n\r\n", b"x" * 20_000, b"\x16\x03\x01\x00\r\n\r\n"):
        client = answering.connect()
        try:
            client.sendall(text)
            answer = client.recv(4096)
        except OSError:  # the door had enough of it
            answer = b""
        assert b"200 OK" not in answer
        client.close()
    assert answering.ask("/live")[0] == 200
