"""Queues: look at them, pause, resume and clear one."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from django_cogworker.api import Queue, all_queues
from django_cogworker.management.verbs.base import ReadingVerb, Verb


class ShowQueues(ReadingVerb):
    name = "queues"
    help = "Each queue: size, latency in seconds, paused or not."

    def run(self, options: dict[str, Any]) -> None:
        rows = [
            {
                "name": each.name,
                "size": each.size,
                "latency": round(each.latency, 3),
                "paused": each.paused,
            }
            for each in all_queues()
        ]
        self.table(rows, options["json"], "No queue has held a job yet.")


class _QueueVerb(Verb):
    """One about a queue that is known."""

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        parser.add_argument("queue")

    def run(self, options: dict[str, Any]) -> None:
        queue = Queue(options["queue"])
        known = [each.name for each in all_queues()]
        if queue.name not in known:
            raise CommandError(
                f"There is no queue {queue.name!r}. Known: {', '.join(known) or 'none yet'}."
            )
        self.steer(queue, options)

    def steer(self, queue: Queue, options: dict[str, Any]) -> None:
        raise NotImplementedError


class Pause(_QueueVerb):
    name = "pause"
    help = "Fetch no more from a queue."

    def steer(self, queue: Queue, options: dict[str, Any]) -> None:
        self._write("Paused." if queue.pause() else "It was paused already.")


class Resume(_QueueVerb):
    name = "resume"
    help = "Fetch again from a queue."

    def steer(self, queue: Queue, options: dict[str, Any]) -> None:
        self._write("Resumed." if queue.resume() else "It was not paused.")


class Clear(_QueueVerb):
    name = "clear"
    help = "Delete every waiting job of a queue."

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--yes", action="store_true", help="Do not ask.")

    def steer(self, queue: Queue, options: dict[str, Any]) -> None:
        if not options["yes"]:
            self.confirm(f"Delete all {queue.size} jobs of queue {queue.name}?")
        self._write(f"{queue.clear()} jobs deleted.")
