"""`run.py test`: the suite, through tox, on the pairs of Python and Django found here.

In full on the oldest and the newest pair, a smoke selection on the pairs between; with it all tests
of what faces Django (pages, tasks, mails, databases …), once for each Django that no full run has.
Without arguments ruff and the type checkers run too. Where `COGWORKER_CI` is set, nothing may be missing.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tools import environment, pythons
from tools.environment import ROOT
from tools.pythons import Pair, Version

FULL, FACES, SMOKE = "in full", "what faces Django and a smoke test", "smoke test"
#: What the names of their environments end with.
SUFFIXES = {FULL: "", FACES: "-django", SMOKE: "-smoke"}


def run(pytest_args: list[str]) -> int:
    """Run it all and return the exit status."""
    python = environment.prepare("test", ["tox>=4.22"])
    interpreters = pythons.find_pythons()
    pairs = [pair for pair in pythons.supported_pairs() if pair.python in interpreters]
    missing = [pair for pair in pythons.supported_pairs() if pair.python not in interpreters]
    if not pairs:
        print("No supported Python was found.")
        return 1

    selected = environments(pairs)
    checks = [] if pytest_args else ["lint", "types"]
    _announce(pairs, missing, checks)
    command = [str(python), "-m", "tox", "run", "-e", ",".join(checks + selected)]
    if pytest_args:
        command += ["--", *pytest_args]
    code = subprocess.run(command, cwd=ROOT, env=_environment(interpreters)).returncode

    for pair in missing:
        print(f"not run, no such Python here: {pair}")
    absent = lacking(missing)
    if absent:
        print("FAILED: COGWORKER_CI is set, and these pairs must run: " + ", ".join(absent))
    return code or int(bool(absent))


def environments(pairs: list[Pair]) -> list[str]:
    """The newest pair comes last, so that its result stands at the end of the output."""
    return [pair.env + SUFFIXES[how] for pair, how in ways(pairs)]


def ways(pairs: list[Pair]) -> list[tuple[Pair, str]]:
    """Each pair with how much of the suite it runs."""
    full = {pairs[0], pairs[-1]}
    # Of those with the same Django the last has the newest Python.
    latest = {pair.django: pair for pair in pairs}
    facing = set(latest.values()) - {latest[each.django] for each in full}
    return [(pair, FULL if pair in full else FACES if pair in facing else SMOKE) for pair in pairs]


def _announce(pairs: list[Pair], missing: list[Pair], checks: list[str]) -> None:
    if checks:
        print(f"first: {' and '.join(checks)}")
    for pair, how in ways(pairs):
        print(f"{how}: {pair}")
    for pair in missing:
        print(f"missing: {pair}")
    print(flush=True)


def _environment(interpreters: dict[Version, Path]) -> dict[str, str]:
    """With the interpreters found at the front of the PATH, where tox looks for them."""
    found = [str(path.parent) for path in interpreters.values()]
    return {**os.environ, "PATH": os.pathsep.join([*found, os.environ.get("PATH", "")])}


def lacking(missing: list[Pair]) -> list[str]:
    if not os.environ.get("COGWORKER_CI"):
        return []
    return [str(pair) for pair in missing if (pair.python, pair.django) in pythons.REQUIRED]
