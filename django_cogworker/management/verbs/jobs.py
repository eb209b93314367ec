"""Single jobs by their jid: find one, explain why it does not run, cancel one."""

from __future__ import annotations

import dataclasses
import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from django_cogworker.api import explain, find_job
from django_cogworker.jobs.masking import visible_payload
from django_cogworker.management.verbs.base import ReadingVerb, Verb, jid_in, seconds


class Find(ReadingVerb):
    name = "find"
    help = "Where a job is."

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        parser.add_argument("jid")
        parser.add_argument(
            "--seconds", type=seconds, default=10.0, help="How long to look. Default: 10."
        )
        super().add_arguments(parser)

    def run(self, options: dict[str, Any]) -> None:
        found = find_job(jid_in(options), budget=options["seconds"])
        if options["json"]:
            payload = None if found.payload is None else visible_payload(found.payload)
            told = {**dataclasses.asdict(found), "payload": payload, "found": bool(found)}
            self._write(json.dumps(told))
        elif found:
            told = dataclasses.asdict(found)
            for name in ("state", "place", "queue", "worker", "at"):
                if told[name]:
                    self._write(f"{name:<8}{told[name]}")
        if not found:
            how_far = "everywhere" if found.everywhere else f"at {found.looked_at} entries"
            raise CommandError(
                f"Job {found.jid} was not found; it was looked for {how_far}."
                + ("" if found.everywhere else " Give it more time: --seconds.")
            )


class Explain(ReadingVerb):
    name = "explain"
    help = "Why a job is not running."

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        parser.add_argument("jid")
        parser.add_argument(
            "--seconds", type=seconds, default=10.0, help="How long to look for it. Default: 10."
        )
        super().add_arguments(parser)

    def run(self, options: dict[str, Any]) -> None:
        found = explain(jid_in(options), budget=options["seconds"])
        if options["json"]:
            self._write(json.dumps(found.as_dict()))
        else:
            words = (found.job_class, found.jid, found.state)
            self._write(" ".join(each for each in words if each))
            for each in found.reasons:
                self._write(f"  {each.code}: {each.text}")
        if found.state == "unknown":
            raise CommandError(f"Job {found.jid} was not found.")


class Cancel(Verb):
    name = "cancel"
    help = "Take a waiting job away, or ask the running one to end."

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        parser.add_argument("jid")
        parser.add_argument(
            "--force", action="store_true", help="Interrupt the running one, as at a time limit."
        )

    def run(self, options: dict[str, Any]) -> None:
        try:
            from django_cogworker.api import cancel
        except ImportError:
            raise CommandError("The feature that cancels jobs is not there.") from None
        said = {
            "removed": "Removed: it was waiting.",
            "asked": "Asked: the worker that runs it, or comes to it, knows.",
            "ended": "It is over already.",
        }
        self._write(said[cancel(jid_in(options), force=options["force"])])
