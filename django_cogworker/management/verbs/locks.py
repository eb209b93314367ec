"""Locks of unique jobs: look at them, delete one."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from django_cogworker.management.verbs.base import ReadingVerb, Verb


class ShowLocks(ReadingVerb):
    name = "locks"
    help = "Locks of unique jobs: key, class, jid, seconds until it ends by itself."

    def run(self, options: dict[str, Any]) -> None:
        from django_cogworker.api.unique import unique_locks

        rows = [
            {"key": each.key, "class": each.job_class, "jid": each.jid, "ttl": round(each.ttl, 1)}
            for each in unique_locks()
        ]
        self.table(rows, options["json"], "No unique job has a lock.")


class Release(Verb):
    name = "release"
    help = "Delete the lock of a unique job."

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        parser.add_argument("key", help="As `cogworker locks` shows it.")

    def run(self, options: dict[str, Any]) -> None:
        from django_cogworker.api.unique import release_lock

        key = options["key"]
        if not release_lock(key):
            raise CommandError(f"There is no lock {key!r}; `cogworker locks` lists them.")
        self._write("Released.")
