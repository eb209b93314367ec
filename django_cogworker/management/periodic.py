"""The verbs of `manage.py cogworker` for periodic entries; they need the feature and its part of the api."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import CommandError

VERBS = (
    ("periodic", "Each periodic entry: cron line, zone, enabled or not, next runs."),
    ("periodic-disable", "Enqueue no more slots of a periodic entry."),
    ("periodic-enable", "Enqueue the slots of a periodic entry again."),
    ("periodic-run", "Enqueue the job of a periodic entry now."),
)


def add_verbs(verb: Callable[[str, str], Any]) -> None:
    for name, text in VERBS:
        added = verb(name, text)
        if name != "periodic":
            added.add_argument("name")
            continue
        added.add_argument("--json", action="store_true", help="As JSON.")
        added.add_argument(
            "--next", type=int, default=1, metavar="N", help="So many next runs. Default: 1."
        )


def rows(options: dict[str, Any]) -> list[dict[str, Any]]:
    """A row an entry for `cogworker periodic`."""
    count: int = options["next"]
    if not 1 <= count <= 1000:
        raise CommandError(f"--next is {count}; it takes a number from 1 to 1000.")
    the_set = _set()
    found = list(the_set)
    disabled = the_set.disabled() if found else set()
    return [
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


def steer(verb: str, name: str) -> str:
    """Carry out a steering verb; what to say."""
    entry = _set()[name]
    if verb == "periodic-disable":
        return "Disabled." if entry.disable() else "It was disabled already."
    if verb == "periodic-enable":
        return "Enabled." if entry.enable() else "It was not disabled."
    return f"Enqueued as {entry.run_now()}."


def _set() -> Any:
    try:
        from django_cogworker.api.periodic import PeriodicSet
    except ImportError:
        raise CommandError("This installation has no periodic entries.") from None
    return PeriodicSet()
