"""Workers: look at them and at those that were lost, make one quiet or stop it."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from django_cogworker.api import Process, ProcessSet, losses
from django_cogworker.management.verbs.base import ReadingVerb, Verb


class ShowWorkers(ReadingVerb):
    name = "workers"
    help = "Each worker: identity, running jobs, queues, quiet or not."

    def run(self, options: dict[str, Any]) -> None:
        rows = [
            {
                "identity": each.identity,
                "busy": each.busy,
                "concurrency": each.info.get("concurrency"),
                "queues": list(dict.fromkeys(each.info.get("queues", []))),
                "quiet": each.is_quiet,
                "memory_kb": each.info.get("rss_kb"),
            }
            for each in ProcessSet()
        ]
        self.table(rows, options["json"], "No worker lives.")


class ShowLosses(ReadingVerb):
    name = "losses"
    help = "Worker processes that a supervisor lost, the newest first."

    def run(self, options: dict[str, Any]) -> None:
        self.table(losses(), options["json"], "No worker process was lost.")


class _WorkerVerb(Verb):
    """One that asks a worker, or all of them, for something."""

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        parser.add_argument("identity", help="As `cogworker workers` shows it, or all.")

    def run(self, options: dict[str, Any]) -> None:
        wanted = options["identity"]
        living = list(ProcessSet())
        chosen = [each for each in living if wanted in ("all", each.identity)]
        if not chosen:
            known = ", ".join(each.identity for each in living) or "none"
            raise CommandError(f"There is no worker {wanted!r}. Living: {known}.")
        for each in chosen:
            done = self.ask(each)
            self._write(f"{each.identity}: {'asked' if done else 'gone'}")

    def ask(self, process: Process) -> bool:
        raise NotImplementedError


class Quiet(_WorkerVerb):
    name = "quiet"
    help = "Let a worker fetch no more."

    def ask(self, process: Process) -> bool:
        return process.quiet()


class Unquiet(_WorkerVerb):
    name = "unquiet"
    help = "Let a quiet worker work again."

    def ask(self, process: Process) -> bool:
        return process.resume()


class Stop(_WorkerVerb):
    name = "stop"
    help = "Let a worker stop in good order."

    def ask(self, process: Process) -> bool:
        return process.stop()
