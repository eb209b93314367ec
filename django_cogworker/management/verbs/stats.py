"""Numbers: counters and sizes."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from django_cogworker.api import Stats, counters
from django_cogworker.management.verbs.base import ReadingVerb


class ShowStats(ReadingVerb):
    name = "stats"
    help = "Counters and sizes."

    def run(self, options: dict[str, Any]) -> None:
        stats = {**dataclasses.asdict(Stats.now()), **counters()}
        if options["json"]:
            self._write(json.dumps(stats))
            return
        del stats["queues"]
        for name, value in stats.items():
            self._write(f"{name:<12}{value:>12}")
