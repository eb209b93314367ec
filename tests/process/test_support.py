"""The tests' own way to run processes, tried with a small script instead of a worker."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from tests.support.waiting import wait_until
from tests.support.worker import WorkerProcess

SCRIPT = """
import signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
signal.signal(signal.SIGTERM, lambda *_: (child.kill(), sys.exit(7)))
print("ready", child.pid, flush=True)
signal.pause()
"""


@pytest.fixture
def process():
    process = WorkerProcess()
    process.argv = [sys.executable, "-c", SCRIPT]
    process.start()
    yield process
    process.close()


def is_gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_lines_signals_and_exit_status(process):
    assert process.wait_for_line(r"ready (\d+)")
    assert process.alive
    assert process.stop() == 7
    assert process.returncode == 7
    assert process.lines[0].startswith("ready")


def test_a_line_that_never_comes(process):
    process.wait_for_line("ready")
    with pytest.raises(AssertionError, match="s went by"):
        process.wait_for_line("nothing", timeout=0.05)
    process.kill()
    assert process.returncode == -signal.SIGKILL


def test_the_end_of_the_process_ends_the_waiting(process):
    process.wait_for_line("ready")
    process.argv = [sys.executable, "-c", "print('only this')"]
    process.close()
    process.lines.clear()
    process.start()
    with pytest.raises(AssertionError, match=r"no line with 'more': it ended\nonly this"):
        process.wait_for_line("more")


@pytest.mark.skipif(sys.platform != "linux", reason="not here: looks at /proc")
def test_close_ends_what_the_process_started(process):
    child = int(process.wait_for_line(r"ready (\d+)")[1])
    process.kill()
    assert not is_gone(child)
    process.close()
    wait_until(lambda: is_gone(child))


def test_a_pause_is_a_pause(process):
    process.wait_for_line("ready")
    process.pause()
    os.kill(process.pid, signal.SIGTERM)
    with pytest.raises(AssertionError, match="still runs"):
        process.wait(0.05)
    process.resume()
    assert process.wait() == 7
