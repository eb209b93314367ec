"""Start child processes that do not outlive the tests, however the tests end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path


@cache
def _setpriv() -> str | None:
    return shutil.which("setpriv") if sys.platform == "linux" else None


def die_with_us(command: Sequence[str]) -> list[str]:
    """The command, such that it is killed when this test run is (by SIGKILL, by a closed terminal).

    `setpriv` sets the parent-death signal without a `preexec_fn`, which is not safe with threads.
    The signal comes when the *thread* that forked ends, so other threads go without it.
    """
    setpriv = _setpriv()
    if setpriv and threading.current_thread() is threading.main_thread():
        return [setpriv, "--pdeathsig", "KILL", *command]
    return list(command)


def marked(mark: str) -> dict[int, str]:
    """The living processes with `mark` (`NAME=value`) in their environment: pid to command line. Linux only."""
    found = {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if f"{mark}\0".encode() in (directory / "environ").read_bytes():
                command = (directory / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(directory.name)] = command.decode()
        except OSError:  # it has ended in between
            continue
    return found


def kill_group(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Kill the process and what it forked; it must lead a group of its own."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)
