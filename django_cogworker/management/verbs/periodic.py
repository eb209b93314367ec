"""Periodic entries: look at them, enable, disable and run one. They need the feature and its part of the api."""

from __future__ import annotations

import datetime as dt
from argparse import ArgumentParser
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import CommandError

from django_cogworker.management.verbs.base import ReadingVerb, Verb


class ShowPeriodic(ReadingVerb):
    name = "periodic"
    help = "Each periodic entry: cron line, zone, enabled or not, next runs."

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--next", type=int, default=1, metavar="N", help="So many next runs. Default: 1."
        )

    def run(self, options: dict[str, Any]) -> None:
        count: int = options["next"]
        if not 1 <= count <= 1000:
            raise CommandError(f"--next is {count}; it takes a number from 1 to 1000.")
        the_set = _set()
        found = list(the_set)
        disabled = the_set.disabled() if found else set()
        rows = [
            {
                "name": each.name,
                "job": each.job,
                "cron": each.cron,
                "tz": each.tz,
                "enabled": each.name not in disabled,
                "next": [
                    dt.datetime.fromtimestamp(slot, ZoneInfo(each.tz)).isoformat()
                    for slot in each.next_runs(count)
                ],
            }
            for each in found
        ]
        self.table(rows, options["json"], "There is no periodic entry.")


class _EntryVerb(Verb):
    """One about an entry."""

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        parser.add_argument("name")

    def run(self, options: dict[str, Any]) -> None:
        self._write(self.steer(_set()[options["name"]]))

    def steer(self, entry: Any) -> str:
        """Do it; what to say."""
        raise NotImplementedError


class Disable(_EntryVerb):
    name = "periodic-disable"
    help = "Enqueue no more slots of a periodic entry."

    def steer(self, entry: Any) -> str:
        return "Disabled." if entry.disable() else "It was disabled already."


class Enable(_EntryVerb):
    name = "periodic-enable"
    help = "Enqueue the slots of a periodic entry again."

    def steer(self, entry: Any) -> str:
        return "Enabled." if entry.enable() else "It was not disabled."


class RunNow(_EntryVerb):
    name = "periodic-run"
    help = "Enqueue the job of a periodic entry now."

    def steer(self, entry: Any) -> str:
        return f"Enqueued as {entry.run_now()}."


def _set() -> Any:
    try:
        from django_cogworker.api.periodic import PeriodicSet
    except ImportError:
        raise CommandError("This installation has no periodic entries.") from None
    return PeriodicSet()
