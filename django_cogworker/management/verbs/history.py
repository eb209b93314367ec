"""What ran: the history and the numbers of each job class."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentParser
from typing import Any

from django_cogworker.management.verbs.base import ReadingVerb, moment_text


class ShowHistory(ReadingVerb):
    name = "history"
    help = "Runs that ended, the newest first."

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--failed", action="store_true", help="Only those that failed.")
        parser.add_argument("--class", dest="job_class", metavar="NAME", help="Of one job class.")
        parser.add_argument(
            "--limit", type=int, default=25, metavar="N", help="How many. Default: 25."
        )
        parser.add_argument("--json", action="store_true", help="As JSON, with all fields.")

    def run(self, options: dict[str, Any]) -> None:
        from django_cogworker.api.history import History

        page = History().page(
            status="failed" if options["failed"] else None,
            job_class=options["job_class"],
            limit=options["limit"],
        )
        if options["json"]:
            self.table([dataclasses.asdict(each) for each in page.entries], True, "")
            return
        rows = [
            {
                "finished": moment_text(each.finished_at),
                "status": each.status,
                "class": each.job_class,
                "jid": each.jid,
                "attempt": each.attempt,
                "seconds": _seconds(each.seconds),
                "wait": _seconds(each.wait),
                "error": each.error_class or "",
            }
            for each in page.entries
        ]
        self.table(rows, False, "No run is kept.")


class ShowClasses(ReadingVerb):
    name = "classes"
    help = "Each job class in the last 24 hours: runs, failures, times in seconds."

    def run(self, options: dict[str, Any]) -> None:
        from django_cogworker.api.history import class_stats

        stats = class_stats()
        if options["json"]:
            self.table([dataclasses.asdict(each) for each in stats], True, "")
            return
        rows = [
            {
                "class": each.job_class,
                "runs": each.runs,
                "failures": each.failures,
                **{
                    f"{kind}_{name}": _seconds(value)
                    for kind, times in (("run", each.seconds), ("wait", each.wait))
                    for name, value in dataclasses.asdict(times).items()
                },
            }
            for each in stats
        ]
        self.table(rows, False, "No job ended in the last 24 hours.")


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
