"""Where the embedded server keeps its things, and who may touch them.

All of it lies in one directory of the project, mode 0700, that ignores itself in git. Only the
socket may have to live elsewhere: the kernel allows about a hundred bytes for its path, and not
every file system can hold a socket. Then it gets a name made from the directory's path, below
`$XDG_RUNTIME_DIR` or `/tmp`, in a directory that belongs to this user alone. The path chosen is
written down in `server.json`, so that processes with other environments find the same socket.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pwd
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

from django_cogworker.exceptions import EmbeddedServerError

logger = logging.getLogger(__name__)

# The kernel allows 108 on Linux and 104 on macOS, the final zero included.
MAX_SOCKET_BYTES = 100


@dataclass(frozen=True, slots=True)
class Place:
    """The directory of one embedded server."""

    directory: Path

    @classmethod
    def at(cls, directory: Path) -> Place:
        """One place for one directory, whatever links and relative ways lead there."""
        return cls(directory.expanduser().resolve())

    @property
    def start_lock(self) -> Path:
        return self.directory / "start.lock"

    @property
    def watchdog_lock(self) -> Path:
        return self.directory / "watchdog.lock"

    @property
    def server_lock(self) -> Path:
        return self.directory / "server.lock"

    @property
    def state_file(self) -> Path:
        return self.directory / "server.json"

    @property
    def config_file(self) -> Path:
        return self.directory / "server.conf"

    @property
    def server_log(self) -> Path:
        return self.directory / "server.log"

    @property
    def watchdog_log(self) -> Path:
        return self.directory / "watchdog.log"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def default_socket(self) -> Path:
        return self.directory / "s.sock"


def closed_door(socket_path: Path) -> Path:
    """The name that a socket gets while its server leaves, so that nobody new comes in."""
    return socket_path.with_suffix(".gone")


def check_owner(place: Place) -> None:
    """Refuse a directory of another user: their files would be mixed up with ours."""
    try:
        found = os.stat(place.directory)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unusable(place.directory, error) from error
    if not stat.S_ISDIR(found.st_mode):
        raise EmbeddedServerError(
            f"{place.directory} is not a directory. Move it away, or point COGWORKER_EMBEDDED_DIR "
            "elsewhere."
        )
    if found.st_uid != os.geteuid():
        raise EmbeddedServerError(
            f"The embedded server's directory {place.directory} belongs to {_user(found.st_uid)}, "
            f"and this process runs as {_user(os.geteuid())}. Run all processes of the project as "
            "one user, or point COGWORKER_EMBEDDED_DIR to a directory of this user's own."
        )


def prepare(place: Place) -> None:
    """Make the directory, for this user alone."""
    check_owner(place)
    try:
        place.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        mode = stat.S_IMODE(place.directory.stat().st_mode)
        if mode & 0o077:
            place.directory.chmod(mode & 0o700)
        place.data.mkdir(exist_ok=True, mode=0o700)
        ignore = place.directory / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="ascii")
    except OSError as error:
        raise _unusable(place.directory, error) from error


def choose_socket(place: Place) -> Path:
    """The socket's path: in the directory where that works, else in a short one of this user's."""
    default = place.default_socket
    if len(os.fsencode(default)) < MAX_SOCKET_BYTES and _can_hold_socket(place.directory):
        return default
    name = hashlib.sha256(os.fsencode(place.directory)).hexdigest()[:16] + ".sock"
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and Path(runtime).is_dir():
        path = Path(runtime) / "cogworker" / name
        if len(os.fsencode(path)) < MAX_SOCKET_BYTES and os.access(runtime, os.W_OK):
            _private_directory(path.parent)
            return path
    path = Path("/tmp") / f"cogworker-{os.geteuid()}" / name
    _private_directory(path.parent)
    return path


def _can_hold_socket(directory: Path) -> bool:
    """Whether a socket can be made there: some shared and network file systems refuse."""
    probe = directory / "p.sock"  # one name will do, the caller holds the start lock
    probe.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            sock.bind(str(probe))
        except OSError as error:
            logger.info("%s cannot hold a socket (%s); it goes elsewhere", directory, error)
            return False
    probe.unlink(missing_ok=True)
    return True


def _private_directory(directory: Path) -> None:
    """Make a directory in a place where others may write, and make sure that it is really ours."""
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        found = os.lstat(directory)
    except OSError as error:
        raise _unusable(directory, error) from error
    if (
        not stat.S_ISDIR(found.st_mode)
        or found.st_uid != os.geteuid()
        or stat.S_IMODE(found.st_mode) & 0o077
    ):
        raise EmbeddedServerError(
            f"{directory} should be a directory of {_user(os.geteuid())} with mode 0700, and is "
            "not. Remove it, or point COGWORKER_EMBEDDED_DIR to a shorter path, so that the "
            "socket fits in there."
        )


def _unusable(directory: Path, error: OSError) -> EmbeddedServerError:
    return EmbeddedServerError(
        f"The embedded server cannot use {directory}: {error.strerror}. Point "
        "COGWORKER_EMBEDDED_DIR to a directory that this user may write to."
    )


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user id {uid}"  # a user without a name, as in containers
