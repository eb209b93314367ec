"""The log files of the embedded server: kept small, and read when a start failed."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

MAX_BYTES = 1024 * 1024
TAIL_LINES = 12
TAIL_BYTES = 8192


def tail(path: Path, offset: int = 0) -> list[str]:
    """The last lines of a log, of what was written after `offset` bytes."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, min(offset, size), size - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError as error:
        return [f"({path} cannot be read: {error.strerror})"]
    return [line.rstrip() for line in text.splitlines() if line.strip()][-TAIL_LINES:]


def note(text: str) -> None:
    """One line in the watchdog's own log, which is its standard error."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    sys.stderr.write(f"{stamp} watchdog {os.getpid()}: {text}\n")
    sys.stderr.flush()


def size(path: Path) -> int:
    """Bytes in the log now; 0 where it does not exist yet."""
    return path.stat().st_size if path.exists() else 0


def trim(path: Path) -> None:
    """Move a log that grew too large to `.old`, in place: its writer keeps its open file."""
    if size(path) > MAX_BYTES:
        shutil.copyfile(path, path.with_suffix(path.suffix + ".old"))
        os.truncate(path, 0)


def advice(lines: list[str], data: Path) -> str:
    """What to do about a server that did not start, judged by what it said."""
    said = "\n".join(lines)
    if "RDB format version" in said or "RDB version" in said:
        return (
            f"The data in {data} were written by a newer server. Use that one "
            "(COGWORKER_EMBEDDED_BINARY), or move the directory away to start empty."
        )
    if any(sign in said for sign in ("Bad file format", "Unexpected end of file", "Unrecoverable")):
        return (
            f"The data in {data} are damaged. Repair the file named above with valkey-check-aof "
            "--fix or redis-check-aof --fix after making a copy, or move the directory away to "
            "start empty."
        )
    if "nix socket" in said and "bind" in said:
        return "Point COGWORKER_EMBEDDED_DIR to a directory on a local disk."
    if "No space left" in said:
        return "The disk is full: make room, or point COGWORKER_EMBEDDED_DIR elsewhere."
    return f"Nothing in {data} was changed; start the program by hand to see more."
