"""Error groups: which failures are the same, and how often. They need the feature and its part of the api."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from django_cogworker.management.verbs.base import ReadingVerb, Verb, moment_text

ORDERS = ("last_seen", "first_seen", "count", "last_day")


class ShowErrors(ReadingVerb):
    name = "errors"
    help = "Failures in groups of the same class, error and place."

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--class", dest="job_class", metavar="NAME", help="Of one job class.")
        parser.add_argument(
            "--order", choices=ORDERS, default=ORDERS[0], help=f"Default: {ORDERS[0]}."
        )
        parser.add_argument(
            "--limit", type=int, default=25, metavar="N", help="How many. Default: 25."
        )
        parser.add_argument("--json", action="store_true", help="As JSON, with all fields.")

    def run(self, options: dict[str, Any]) -> None:
        groups = (
            _api()
            .error_groups(
                job_class=options["job_class"], order=options["order"], limit=options["limit"]
            )
            .groups
        )
        if options["json"]:
            rows = [{**dataclasses.asdict(each), "last_day": each.last_day} for each in groups]
            self.table(rows, True, "")
            return
        rows = [
            {
                "group": each.id,
                "count": each.count,
                "last_day": each.last_day,
                "last_seen": moment_text(each.last_seen),
                "class": each.job_class,
                "error": each.error_class,
                "where": each.where,
            }
            for each in groups
        ]
        self.table(rows, False, "No job has failed in the last 30 days.")


class ForgetErrors(Verb):
    name = "errors-forget"
    help = "Count a group of errors from nothing again."

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        parser.add_argument("group", help="As `cogworker errors` shows it.")

    def run(self, options: dict[str, Any]) -> None:
        if not _api().forget_error_group(options["group"]):
            raise CommandError(
                f"There is no group {options['group']!r}; `cogworker errors` lists them."
            )
        self._write("Forgotten.")


def _api() -> Any:
    try:
        from django_cogworker.api import errors
    except ImportError:
        raise CommandError("This installation has no error groups.") from None
    return errors
