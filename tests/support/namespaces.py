"""Workers that cannot see each other's processes, as in containers."""

from __future__ import annotations

import shutil
import subprocess
import sys

from tests.support.needs import missing, not_here


def _unshared(*options: str) -> tuple[str, ...]:
    if sys.platform != "linux":
        not_here("namespaces are Linux's")
    tool = shutil.which("unshare")
    if tool is None:
        missing("unshare")
    prefix = (tool, *options, "--fork", "--kill-child")
    if subprocess.run([*prefix, "true"], capture_output=True).returncode:
        missing(f"the right to call unshare {' '.join(options)}")
    return prefix


def own_pids() -> tuple[str, ...]:
    """What to put before a command that gets process ids of its own, from 1, with its own `/proc`."""
    return _unshared("--pid", "--mount-proc")


def own_pids_foreign_proc() -> tuple[str, ...]:
    """The same with the `/proc` of outside, where the numbers mean other processes."""
    return _unshared("--pid")


def own_mounts() -> tuple[str, ...]:
    """What to put before a command that may mount what it likes."""
    return _unshared("--mount")
