"""Workers: look at them, at their jobs' stacks and at those that were lost, make one quiet or stop it."""

from __future__ import annotations

import dataclasses
import json
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from django_cogworker.api import Process, ProcessSet, losses
from django_cogworker.management.verbs.base import ReadingVerb, Verb, seconds

#: What a worker runs with; as JSON alone, since it would not fit on a line.
VERSIONS = ("version", "python", "gil", "django", "redis_py")


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
                **({name: each.info.get(name) for name in VERSIONS} if options["json"] else {}),
            }
            for each in ProcessSet()
        ]
        self.table(rows, options["json"], "No worker lives.")


class ShowLosses(ReadingVerb):
    name = "losses"
    help = "Worker processes that a supervisor lost, the newest first."

    def run(self, options: dict[str, Any]) -> None:
        self.table(losses(), options["json"], "No worker process was lost.")


class ShowStacks(ReadingVerb):
    name = "stacks"
    help = "Where the running jobs of a worker are: asks it, and waits for its answer."

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        parser.add_argument("identity", help="As `cogworker workers` shows it.")
        parser.add_argument(
            "--seconds",
            type=seconds,
            default=15.0,
            metavar="N",
            help="How long to wait for the answer. Default: 15.",
        )
        super().add_arguments(parser)

    def run(self, options: dict[str, Any]) -> None:
        try:
            from django_cogworker.api import ask_stacks, worker_stacks
        except ImportError:
            raise CommandError("The feature that shows stacks is not there.") from None
        identity: str = options["identity"]
        before = worker_stacks(identity).at
        if not ask_stacks(identity):
            raise CommandError(_unknown(identity, list(ProcessSet())))
        deadline = time.monotonic() + options["seconds"]
        while (found := worker_stacks(identity)).at in (None, before):
            if time.monotonic() >= deadline:
                raise CommandError(
                    f"{identity} has not answered within {options['seconds']:g} seconds."
                )
            time.sleep(0.1)
        if options["json"]:
            self._write(json.dumps(dataclasses.asdict(found)))
            return
        for each in found.jobs:
            since = (found.at or 0.0) - each.since
            self._write(f"{each.job_class} {each.jid}, for {since:.1f} s\n{each.stack}")
        if found.more:
            self._write(f"And {found.more} more.")
        if not found.jobs:
            self._write("No job is running.")


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
            raise CommandError(_unknown(wanted, living))
        for each in chosen:
            done = self.ask(each)
            self._write(f"{each.identity}: {'asked' if done else 'gone'}")

    def ask(self, process: Process) -> bool:
        raise NotImplementedError


def _unknown(identity: str, living: list[Process]) -> str:
    known = ", ".join(each.identity for each in living) or "none"
    return f"There is no worker {identity!r}. Living: {known}."


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
