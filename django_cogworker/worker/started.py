"""Which jobs had started, written so that it outlives the process.

Each processor has a place in a small memory-mapped file, where it writes the ticket of the job that
it runs. After a `kill -9` the kernel still has the page, and a recoverer on the same host reads it:
only jobs that had started can have killed their worker, all others are innocent. Where the file
cannot be read, every job counts as started.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import mmap
import os
import secrets
import struct
import time
from pathlib import Path

from django_cogworker.worker.folders import folder, make_folder

logger = logging.getLogger("django_cogworker")

_PLACE = struct.Struct("<Q")
_PURPOSE = "started"
#: A file that no worker has kept for so long (seconds) was left behind, and so many are looked at.
LEFT_BEHIND = 7 * 86_400
MOST_TIDIED = 1000


class StartedTickets:
    """The file of this worker, named `name`. Without a folder to write to it does nothing."""

    def __init__(self, places: int) -> None:
        self.name = secrets.token_hex(8)
        self._path = folder(_PURPOSE) / self.name
        self._places: mmap.mmap | None = None
        try:
            _tidy(make_folder(_PURPOSE))
            with self._path.open("x+b") as file:
                file.write(bytes(_PLACE.size * places))
                file.flush()
                self._places = mmap.mmap(file.fileno(), _PLACE.size * places)
        except OSError as error:
            logger.warning(
                "Started jobs cannot be noted in %s (%s); after a crash every fetched job counts as "
                "started.",
                self._path.parent,
                error,
            )

    def note(self, place: int, ticket: int) -> None:
        """The processor of that place runs this ticket from now on (0: none)."""
        if self._places is not None:
            _PLACE.pack_into(self._places, place * _PLACE.size, ticket)

    def keep(self) -> None:
        """Said now and then while the worker lives: the file is not one that was left behind."""
        if self._places is not None:
            with contextlib.suppress(OSError):
                os.utime(self._path)

    def remove(self) -> None:
        """The worker stops in good order: nobody will ask."""
        with contextlib.suppress(OSError):
            self._path.unlink()


def read_started(name: str) -> frozenset[int] | None:
    """The tickets that had started in a dead worker of this host; `None` where that is not known."""
    if not name.isalnum():
        return None
    try:
        content = (folder(_PURPOSE) / name).read_bytes()
    except OSError:
        return None
    return frozenset(each[0] for each in _PLACE.iter_unpack(content) if each[0])


def _tidy(path: Path) -> None:
    """Take away what was left by workers whose jobs nobody recovered from here."""
    oldest = time.time() - LEFT_BEHIND
    for each in itertools.islice(path.iterdir(), MOST_TIDIED):
        with contextlib.suppress(OSError):
            if each.stat().st_mtime < oldest:
                each.unlink()


def forget_started(name: str) -> None:
    """The dead worker's jobs were recovered; its file is of no use any more."""
    if name.isalnum():
        (folder(_PURPOSE) / name).unlink(missing_ok=True)
