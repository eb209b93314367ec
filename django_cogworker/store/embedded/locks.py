"""File locks: who may start the server, and who lives.

A lock is a `flock` on a file of the directory. The kernel frees it when the last copy of the open
file is gone, so a lock tells the truth about a process after `kill -9` too. A copy may also live in
a child that some other thread forked in the meantime; therefore `release` unlocks explicitly, which
frees the lock for all copies, instead of only closing its own.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from django_cogworker.exceptions import EmbeddedServerError


class FileLock:
    """An exclusive lock on a file, held by at most one open file at a time."""

    __slots__ = ("_fd", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    @property
    def fd(self) -> int:
        """The open file that holds the lock; to be handed to a child that shall hold it on."""
        if self._fd is None:
            raise RuntimeError(f"{self.path} is not locked")
        return self._fd

    def try_acquire(self) -> bool:
        """Take the lock if it is free; never waits."""
        fd = _open(self.path)
        if not _lock(fd, self.path):
            os.close(fd)
            return False
        self._fd = fd
        return True

    def release(self) -> None:
        """Free the lock for every copy of the open file. Does nothing if it is not held."""
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            self.hand_over()

    def hand_over(self) -> None:
        """Close this copy only: a child that inherited the other one holds the lock from now on."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def still_there(self) -> bool:
        """Whether the held file is still the one that others find under this path."""
        try:
            found = os.stat(self.path)
        except OSError:
            return False  # gone, or its directory is: the answer to the question, not a failure
        held = os.fstat(self.fd)
        return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


def is_held(path: Path) -> bool:
    """Whether any process holds the lock.

    Takes a shared lock for a moment where it is free: several who look do not see each other, but
    one who wants to take it may have to try twice.
    """
    if not path.exists():
        return False
    fd = _open(path)
    try:
        if not _lock(fd, path, fcntl.LOCK_SH):
            return True
        fcntl.flock(fd, fcntl.LOCK_UN)
        return False
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise EmbeddedServerError(
            f"The embedded server's lock file {path} cannot be opened: {error.strerror}. Point "
            "COGWORKER_EMBEDDED_DIR to a directory that this user may write to."
        ) from error


def _lock(fd: int, path: Path, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise EmbeddedServerError(
            f"The file system of {path} cannot lock files ({error.strerror}). Point "
            "COGWORKER_EMBEDDED_DIR to a directory on a local disk."
        ) from error
    return True
