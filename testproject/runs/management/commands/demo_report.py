from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Sum

from runs.models import DemoBatch, JobRun
from runs.summary import by_class, complaints, is_settled, runs_of

COLUMNS = ("jobs", "total_runs", "total_failures", "total_retries", "finished", "dead")
TITLES = ("jobs", "runs", "failures", "retries", "finished", "dead")


class Command(BaseCommand):
    help = "Say what the jobs of the last demo did. Fails where they did not do all they should."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--wait", type=float, default=0.0, help="Seconds to wait for jobs that are not done."
        )

    def handle(self, *args: Any, wait: float, **options: Any) -> None:
        batch = DemoBatch.objects.order_by("pk").last()
        if batch is None:
            raise CommandError("There was no demo yet: run enqueue_demo.")
        started = time.monotonic()
        while not is_settled(batch) and time.monotonic() - started < wait:
            time.sleep(0.1)
        self._print_table(batch)
        wrong = list(complaints(batch))
        if wrong:
            raise CommandError("Not as it should be:\n  " + "\n  ".join(wrong))
        jobs, busy = runs_of(batch).count(), self._busy_seconds(batch)
        self.stdout.write(f"\nAll {jobs} jobs did what they should: {busy:.1f} s of work.")

    def _print_table(self, batch: DemoBatch) -> None:
        rows = by_class(runs_of(batch))
        width = max([len("class"), *(len(row["job_class"]) for row in rows)])
        self.stdout.write("\n" + "  ".join(["class".ljust(width), *(f"{t:>8}" for t in TITLES)]))
        for row in rows:
            figures = [f"{row[column]:>8}" for column in COLUMNS]
            self.stdout.write("  ".join([row["job_class"].ljust(width), *figures]))
        totals = [f"{sum(row[column] for row in rows):>8}" for column in COLUMNS]
        self.stdout.write("  ".join(["total".ljust(width), *totals]))

    def _busy_seconds(self, batch: DemoBatch) -> float:
        seconds = runs_of(batch).filter(state=JobRun.State.FINISHED)
        return float(seconds.aggregate(total=Sum("seconds"))["total"] or 0)
