"""A memory limit of the kernel for one process and its children, as containers have it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.needs import missing, not_here
from tests.support.waiting import wait_until

#: Where groups are made: version 1 of the kernel's interface, and version 2.
PLACES = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max"),
)


@contextmanager
def memory_limit(megabytes: int) -> Iterator[tuple[str, ...]]:
    """What to put before a command that may use so much memory, and is killed when it wants more."""
    if sys.platform != "linux":
        not_here("limits of groups are Linux's")
    name = f"cogworker-test-{os.getpid()}"
    for place, file in PLACES:
        group = place / name
        with suppress(OSError):
            group.mkdir()
        try:
            (group / file).write_text(str(megabytes * 2**20))
        except OSError:
            with suppress(OSError):
                group.rmdir()
            continue
        break
    else:
        missing("the right to limit the memory of a group of processes")
    try:
        yield ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text(), message="an empty group")
        group.rmdir()
