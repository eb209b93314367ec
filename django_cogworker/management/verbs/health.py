"""Health of the workers on this host, for probes. Asks no Redis."""

from __future__ import annotations

import math
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from django_cogworker.conf import get_config
from django_cogworker.management.verbs.base import ReadingVerb
from django_cogworker.store.target import resolve
from django_cogworker.worker.health import STALE, judge
from django_cogworker.worker.health_file import project_mark, read_reports


class HealthCheck(ReadingVerb):
    name = "healthcheck"
    help = "Exit status 0 where the workers on this host are healthy, else 1. Asks no Redis."

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--ready",
            action="store_true",
            help="They are also to take jobs: not quiet, not starting.",
        )
        parser.add_argument(
            "--max-age",
            type=float,
            default=STALE,
            metavar="SECONDS",
            help=f"How old the last turn of a loop may be. Default: {STALE:.0f}.",
        )
        super().add_arguments(parser)

    def run(self, options: dict[str, Any]) -> None:
        config = get_config()
        limit: float = options["max_age"]
        if not 0 < limit < math.inf:
            raise CommandError(f"--max-age is {limit:g}; it takes a number of seconds above 0.")
        reports = read_reports(project_mark(resolve(config).description, config.key_prefix))
        if not reports:
            raise CommandError("No worker of this project and user runs on this host.")
        verdict = judge(reports, limit=limit)
        rows = [
            {
                "identity": each["identity"],
                "live": each["live"],
                "ready": each["ready"],
                "stuck": list(each.get("stuck", {})),
            }
            for each in verdict.workers
        ]
        self.table(rows, options["json"], "")
        if not verdict.live:
            raise CommandError("A worker is stuck.")
        if options["ready"] and not verdict.ready:
            raise CommandError("A worker is not ready.")
