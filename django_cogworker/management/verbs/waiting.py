"""Jobs that wait, or are dead: retry, delete, bury, move or reschedule all that match.

Without a criterion it takes `--all`, and each asks before it does anything, unless it is told not to. The work is
done in steps; what came after the beginning is left alone (see `BulkAction`).
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime as dt
import json
import time
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any, ClassVar

from django.core.management.base import CommandError
from django.utils.timezone import is_naive, make_aware

from django_cogworker.api import (
    Action,
    BulkAction,
    BulkProgress,
    Criteria,
    DeadSet,
    Queue,
    RetrySet,
    ScheduledSet,
)
from django_cogworker.exceptions import InvalidQueueName
from django_cogworker.management.verbs.base import Verb, seconds

Place = Queue | ScheduledSet | RetrySet | DeadSet

#: The sets, by the names that `cogworker stats` has for them.
SETS: dict[str, Callable[[], Place]] = {
    "scheduled": ScheduledSet,
    "retrying": RetrySet,
    "dead": DeadSet,
}
QUEUE = "queue:"
#: Seconds that are spent on counting before the question, and matches that are counted at the most.
COUNTING = 2.0
MOST_COUNTED = 1_000
#: Seconds of one step.
STEP = 1.0
#: Options by the name of their criterion: the word, what it is called, what it says.
CRITERIA = {
    "job_name": ("--class", "NAME", "The whole name of the job class."),
    "arguments": ("--arguments", "TEXT", "A part of the arguments."),
    "jid": ("--jid", "JID", "A part of the jid, or all of it."),
    "error": ("--error", "TEXT", "A part of the error's class or message."),
    "queue": ("--queue", "NAME", "The queue that they go to."),
    "tag": ("--tag", "TAG", "One of their tags."),
    "error_group": ("--group", "ID", "Their error group, as `cogworker errors` shows it."),
    "anything": ("--any", "TEXT", "A part of any of these but the group."),
}


class _BulkVerb(Verb):
    """One that acts on all that match."""

    #: What it says in its question, and of what it did.
    ask_to: ClassVar[str]
    did: ClassVar[str]
    #: Names of the sets that it takes jobs from, and whether from queues too.
    sets: ClassVar[tuple[str, ...]] = tuple(SETS)
    queues: ClassVar[bool] = True

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        names = [*cls.sets, *([f"{QUEUE}NAME"] if cls.queues else [])]
        parser.add_argument(
            "place", type=cls._place, metavar="PLACE", help=f"Where they are: {', '.join(names)}."
        )
        for name, (word, called, about) in CRITERIA.items():
            parser.add_argument(word, dest=name, default="", metavar=called, help=about)
        parser.add_argument("--all", action="store_true", help="All of them, whatever they are.")
        parser.add_argument("--yes", action="store_true", help="Do not ask.")
        parser.add_argument("--json", action="store_true", help="What became of it as JSON.")

    @classmethod
    def _place(cls, text: str) -> str:
        if text in cls.sets or (cls.queues and text.startswith(QUEUE)):
            return text
        raise argparse.ArgumentTypeError(f"{text!r} is no place for this")

    def action(self, options: dict[str, Any]) -> Action:
        """What is to be done."""
        return Action(self.name)  # type: ignore[arg-type]

    def run(self, options: dict[str, Any]) -> None:
        criteria = Criteria(**{name: options[name] for name in CRITERIA})
        if bool(criteria) == options["all"]:
            raise CommandError(
                "Say which jobs, by one of the criteria, or --all; not both. Nothing was done."
            )
        action, place = self.action(options), _open(options["place"])
        if not options["yes"]:
            which = _count(place, criteria)
            if which == "0":
                self._show(BulkProgress(finished=True), options["json"])
                return
            self.confirm(f"{self.ask_to} {which} jobs of {options['place']}{_words(criteria)}?")
        bulk = BulkAction(place, action, criteria)
        while not bulk.step(STEP).finished:
            pass
        self._show(bulk.progress, options["json"])

    def _show(self, progress: BulkProgress, as_json: bool) -> None:
        if as_json:
            self._write(json.dumps(dataclasses.asdict(progress)))
        else:
            self._write(f"{self.did}: {progress.done}.")
            for name, count in sorted(progress.classes.items(), key=lambda each: -each[1]):
                self._write(f"  {count:>8}  {name or 'others'}")
            if progress.gone:
                self._write(f"Somebody was quicker with {progress.gone}.")
            if progress.newer:
                self._write(f"Left alone, because they came meanwhile: {progress.newer}.")
        if progress.refused:
            why = "; ".join(f"{count}: {reason}" for reason, count in progress.refused.items())
            raise CommandError(f"Some were refused. {why}.")


class Retry(_BulkVerb):
    name = "retry"
    help = (
        "Bring jobs that are scheduled, wait for another attempt or are dead to their queues now."
    )
    ask_to, did = "Retry", "On their queues"
    queues = False


class Delete(_BulkVerb):
    name = "delete"
    help = "Delete jobs that wait, or are dead."
    ask_to, did = "Delete", "Deleted"


class Kill(_BulkVerb):
    name = "kill"
    help = "Bring jobs that wait to the dead set, from where they can be retried."
    ask_to, did = "Bury", "Buried"
    sets = ("scheduled", "retrying")


class Move(_BulkVerb):
    name = "move"
    help = "Bring jobs to another queue; those of a set wait on, and go there in their time."
    ask_to, did = "Move", "Moved"

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--to", required=True, metavar="QUEUE", help="Where to.")

    def action(self, options: dict[str, Any]) -> Action:
        return Action("move", queue=options["to"])


class Reschedule(_BulkVerb):
    name = "reschedule"
    help = "Another time for jobs that are scheduled or wait for another attempt."
    ask_to, did = "Reschedule", "Rescheduled"
    sets = ("scheduled", "retrying")
    queues = False

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        when = parser.add_mutually_exclusive_group(required=True)
        when.add_argument("--in", dest="seconds", type=seconds, metavar="SECONDS", help="From now.")
        when.add_argument(
            "--at", metavar="TIME", help="As 2030-01-31T09:00, in TIME_ZONE or +02:00."
        )

    def action(self, options: dict[str, Any]) -> Action:
        if options["seconds"] is not None:
            return Action("reschedule", at=time.time() + options["seconds"])
        try:
            at = dt.datetime.fromisoformat(options["at"])
        except ValueError:
            raise CommandError(f"{options['at']!r} is no time. Nothing was done.") from None
        return Action("reschedule", at=(make_aware(at) if is_naive(at) else at).timestamp())


def _open(name: str) -> Place:
    if name in SETS:
        return SETS[name]()
    try:
        return Queue(name.removeprefix(QUEUE))
    except InvalidQueueName as error:
        raise CommandError(f"{error} Nothing was done.") from None


def _count(place: Place, criteria: Criteria) -> str:
    """How many match, as far as they can be counted quickly."""
    if not criteria:
        return f"all {place.size if isinstance(place, Queue) else len(place)}"
    found = place.search(criteria, limit=MOST_COUNTED, budget=COUNTING)
    return f"{'' if found.finished else 'at least '}{len(found.entries)}"


def _words(criteria: Criteria) -> str:
    words = [f"{CRITERIA[name][0]} {text!r}" for name, text in criteria.texts().items()]
    return f" with {', '.join(words)}" if words else ""
