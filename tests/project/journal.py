"""How a job leaves a trace that a test in another process can read."""

from __future__ import annotations

import os
import time
from pathlib import Path

DIRECTORY_VARIABLE = "COGWORKER_TEST_DIR"
JOURNAL_NAME = "journal"


def directory() -> Path:
    """The directory that the test made for its jobs."""
    return Path(os.environ[DIRECTORY_VARIABLE])


def write(line: str) -> None:
    """Append one line; one write call with O_APPEND, so it is whole whoever else writes."""
    fd = os.open(directory() / JOURNAL_NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, f"{line}\n".encode())
    finally:
        os.close(fd)


def wait_for_file(name: str, timeout: float = 60.0) -> None:
    """Return when the test has made the file `name`."""
    path, deadline = directory() / name, time.monotonic() + timeout
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nobody made {name}")
        time.sleep(0.005)


def strike(name: str) -> int:
    """Count up the counter `name`, shared by all processes, and return its new value."""
    fd = os.open(directory() / f"count-{name}", os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(fd, b".")
        return os.fstat(fd).st_size
    finally:
        os.close(fd)
