"""A worker's health as a file, for `cogworker healthcheck`.

The worker writes its report there once a second, and takes the file away when it stops. A probe in
the same container, or on the same host, reads it: no port has to be chosen, and Redis need not be
there. The file of a killed worker stays until a next worker or probe finds its process gone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import logging
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django_cogworker.worker.folders import folder, make_folder
from django_cogworker.worker.health import Report
from django_cogworker.worker.identity import host_facts
from django_cogworker.worker.neighbours import host_rebooted, is_gone, same_host

logger = logging.getLogger("django_cogworker")

_PURPOSE = "health"
#: Files that a worker looks at when it starts.
MOST_TIDIED = 1000


def project_mark(description: str, prefix: str) -> str:
    """What tells the workers of one Redis and key prefix from all others on this machine."""
    return hashlib.sha256(f"{description}|{prefix}".encode()).hexdigest()[:16]


class HealthFile:
    """The one of this worker. Where no file can be written it says so once and does nothing."""

    def __init__(self, project: str) -> None:
        self._path = folder(_PURPOSE) / f"{project}-{secrets.token_hex(6)}.json"
        self._new = self._path.with_suffix(".new")
        self._host = {**host_facts(), "pid": os.getpid()}
        self._usable = True
        _tidy()

    def write(self, report: Report) -> None:
        """Replace what stood there, in one step for those who read."""
        if not self._usable:
            return
        words = json.dumps({"host": self._host, "report": dataclasses.asdict(report)})
        try:
            try:
                self._new.write_text(words, "utf-8")
            except FileNotFoundError:
                make_folder(_PURPOSE)
                self._new.write_text(words, "utf-8")
            self._new.replace(self._path)
        except OSError as error:
            self._usable = False
            logger.warning(
                "The worker's health cannot be written to %s (%s); `cogworker healthcheck` does not see "
                "this worker.",
                self._path.parent,
                error,
            )

    def remove(self) -> None:
        """The worker stops."""
        self._usable = False
        for each in (self._new, self._path):
            try:
                each.unlink(missing_ok=True)
            except OSError:
                return  # the folder has become somebody else's; nobody reads it then


def read_reports(project: str) -> list[Report]:
    """What the workers of that project on this host say of themselves. Takes away the files of those
    whose process is gone.
    """
    own = host_facts()
    found = []
    for path, words in _read_files(project):
        if _is_left_behind(words["host"], own):
            path.unlink(missing_ok=True)
        elif same_host(words["host"], own) or not own.get("boot_id"):
            found.append(Report.read(words["report"]))
    return sorted(found, key=lambda each: each.pid)


def _read_files(project: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in folder(_PURPOSE).glob(f"{project}-*.json"):
        try:
            words = json.loads(path.read_text("utf-8"))
            Report.read(words["report"])
            dict(words["host"])
        except OSError:
            continue  # gone meanwhile, or not ours to read
        except (ValueError, KeyError, TypeError):
            logger.warning("The file %s is no report of a worker's health.", path)
            continue
        yield path, words


def _tidy() -> None:
    """Take away what killed workers have left, of whatever project."""
    own = host_facts()
    for path, words in itertools.islice(_read_files("*"), MOST_TIDIED):
        if _is_left_behind(words["host"], own):
            path.unlink(missing_ok=True)


def _is_left_behind(host: dict[str, Any], own: dict[str, str]) -> bool:
    """Whether the worker is known to be gone; one that another container's processes see is not."""
    if host_rebooted(host, own):
        return True
    return (same_host(host, own) or not own.get("boot_id")) and _process_is_gone(host)


def _process_is_gone(host: dict[str, Any]) -> bool:
    if host.get("pid_start"):
        return is_gone(host)
    try:
        os.kill(int(host["pid"]), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
