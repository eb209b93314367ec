"""Which pairs of Python and Django we support, and which of them this machine can run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

Version = tuple[int, int]

PYTHONS: list[Version] = [(3, 11), (3, 12), (3, 13), (3, 14)]
DJANGOS: list[Version] = [(5, 2), (6, 0), (6, 1)]

# A machine that claims to run everything has at least these, in full.
REQUIRED: list[tuple[Version, Version]] = [((3, 11), (5, 2)), ((3, 13), (6, 1))]

_PROBE = """
import json, sys, sysconfig
print(json.dumps([sys.implementation.name, sys.version_info[:2], sys.version_info[3],
                  bool(sysconfig.get_config_var("Py_GIL_DISABLED"))]))
"""


@dataclass(frozen=True, order=True)
class Pair:
    """One Python with one Django."""

    python: Version
    django: Version

    def __str__(self) -> str:
        return f"Python {_dotted(self.python)} with Django {_dotted(self.django)}"

    @property
    def env(self) -> str:
        """The name of its tox environment."""
        return f"py{_plain(self.python)}-django{_plain(self.django)}"


def supported_pairs() -> list[Pair]:
    """All pairs, the oldest first. Django 6 needs Python 3.12."""
    return [
        Pair(python, django)
        for python in PYTHONS
        for django in DJANGOS
        if django < (6, 0) or python >= (3, 12)
    ]


def find_pythons() -> dict[Version, Path]:
    """The interpreters of this machine: ours, those on the PATH, those of pyenv."""
    found: dict[Version, Path] = {}
    for candidate in _candidates():
        version = _version_of(candidate)
        if version in PYTHONS:
            found.setdefault(version, candidate)
    return found


def _candidates() -> list[Path]:
    names = [f"python{_dotted(version)}" for version in PYTHONS]
    paths = [Path(sys.executable)]
    paths += [Path(path) for name in names if (path := shutil.which(name))]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for name in names:
        # The last of "3.12.1" and "3.12.10" is the newer one.
        paths += sorted(pyenv.glob(f"*/bin/{name}"), key=_release_of, reverse=True)
    return paths


def _release_of(path: Path) -> list[int]:
    return [int(part) for part in path.parts[-3].split(".") if part.isdigit()]


def _version_of(python: Path) -> Version | None:
    """Its version if it is a released CPython with a GIL. A shim of pyenv may be none at all."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=30
        )
        implementation, version, level, free_threaded = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    if implementation != "cpython" or level != "final" or free_threaded:
        return None
    return version[0], version[1]


def _dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def _plain(version: Version) -> str:
    return f"{version[0]}{version[1]}"
