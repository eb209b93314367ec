"""`manage.py runworker`: one worker process."""

from __future__ import annotations

import dataclasses
import logging
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from django_cogworker.conf import Config, get_config, parse_queues, use_config
from django_cogworker.exceptions import CogworkerError
from django_cogworker.store.store import get_store
from django_cogworker.worker.launcher import Launcher

LEVELS = {0: logging.CRITICAL, 1: logging.INFO, 2: logging.DEBUG, 3: logging.DEBUG}


class Command(BaseCommand):
    help = "Runs background jobs until it is stopped (TERM or Ctrl-C; twice to stop at once)."
    requires_system_checks = "__all__"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "-q",
            "--queue",
            action="append",
            metavar="NAME[,WEIGHT]",
            help="A queue to read, with its weight; may be given several times. "
            "Default: COGWORKER_QUEUES.",
        )
        parser.add_argument(
            "-c",
            "--concurrency",
            type=int,
            metavar="N",
            help="How many jobs run at the same time. Default: COGWORKER_CONCURRENCY.",
        )
        parser.add_argument(
            "--fetch",
            choices=["reliable", "basic"],
            help="How jobs are fetched. Default: COGWORKER_FETCH.",
        )
        parser.add_argument(
            "--strict",
            action="store_true",
            help="Read the queues in the given order, always the first one that has a job.",
        )
        parser.add_argument("--logfile", type=Path, metavar="FILE", help="Append the log to FILE.")
        parser.add_argument(
            "--burst", action="store_true", help="Stop as soon as no job is waiting or due."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self._set_up_logging(options["verbosity"], options["logfile"])
        try:
            config = self._config(options)
            use_config(config)
            launcher = Launcher(get_store(), config, burst=options["burst"])
        except CogworkerError as error:
            raise CommandError(str(error)) from error
        launcher.run()

    @staticmethod
    def _config(options: dict[str, Any]) -> Config:
        config = get_config()
        changes: dict[str, Any] = {}
        if options["queue"]:
            changes["queues"] = parse_queues(_weights(options["queue"]))
        if options["concurrency"] is not None:
            if options["concurrency"] < 1:
                raise CommandError(
                    f"--concurrency is {options['concurrency']}; it takes a whole number from 1."
                )
            changes["concurrency"] = options["concurrency"]
        if options["fetch"]:
            changes["fetch"] = options["fetch"]
        if options["strict"]:
            changes["queue_order"] = "strict"
        return dataclasses.replace(config, **changes)

    def _set_up_logging(self, verbosity: int, logfile: Path | None) -> None:
        """To the terminal where the project configured nothing for us; to a file where that was
        asked.
        """
        logger = logging.getLogger("django_cogworker")
        handlers: list[logging.Handler] = []
        if logfile is not None:
            try:
                handlers.append(logging.FileHandler(logfile, encoding="utf-8"))
            except OSError as error:
                raise CommandError(f"--logfile {logfile} cannot be written: {error}.") from error
        elif not logger.hasHandlers():
            handlers.append(logging.StreamHandler(self.stderr))
        for handler in handlers:
            handler.setFormatter(_line_format())
            logger.addHandler(handler)
        if handlers or verbosity != 1:
            logger.setLevel(LEVELS[verbosity])


def _line_format() -> logging.Formatter:
    formatter = logging.Formatter(
        "%(asctime)s pid=%(process)d %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ"
    )
    formatter.converter = time.gmtime
    return formatter


def _weights(given: list[str]) -> dict[str, int]:
    """Queues of the command line: `name` or `name,weight`; a repeated name adds up."""
    weights: dict[str, int] = {}
    for each in given:
        name, _, weight = each.partition(",")
        try:
            number = int(weight) if weight else 1
            if number < 1:
                raise ValueError
        except ValueError:
            raise CommandError(
                f"--queue {each}: the weight after the comma is a whole number from 1."
            ) from None
        weights[name] = weights.get(name, 0) + number
    try:
        parse_queues(weights)
    except ValueError as error:
        raise CommandError(f"--queue: {error}.") from error
    return weights
