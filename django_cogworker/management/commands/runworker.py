"""`manage.py runworker`: one worker process, or a supervisor of several."""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from django_cogworker import checks
from django_cogworker.conf import Config, get_config, is_debug, use_config
from django_cogworker.exceptions import CogworkerError
from django_cogworker.management.logs import FORMATS, set_up_logging
from django_cogworker.parsers import parse_queue_names, parse_queues
from django_cogworker.store.store import get_store
from django_cogworker.worker.health_door import HealthDoor
from django_cogworker.worker.launcher import Launcher
from django_cogworker.worker.lifeline import hold_lifeline
from django_cogworker.worker.limits import Limits, resident_kb
from django_cogworker.worker.reloader import Reloader
from django_cogworker.worker.renewal import is_trial
from django_cogworker.worker.supervision import Supervision
from django_cogworker.worker.supervisor import Supervisor

#: Seconds that --watchdog takes.
SHORTEST_WATCHDOG, LONGEST_WATCHDOG = 15.0, 86_400.0


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
        parser.add_argument(
            "--async-queues",
            nargs="*",
            metavar="NAME",
            help="Queues of coroutines, which an event loop serves beside the processors. "
            "Default: COGWORKER_ASYNC_QUEUES.",
        )
        parser.add_argument("--logfile", type=Path, metavar="FILE", help="Append the log to FILE.")
        parser.add_argument(
            "--log-format",
            choices=FORMATS,
            default="text",
            help="How lines of the log look: for people, or one JSON object a line.",
        )
        parser.add_argument(
            "--burst", action="store_true", help="Stop as soon as no job is waiting or due."
        )
        parser.add_argument(
            "--processes",
            type=int,
            default=1,
            metavar="N",
            help="How many worker processes. From 2 a supervisor starts, watches and replaces them.",
        )
        parser.add_argument(
            "--start-method",
            choices=["fork", "spawn"],
            help="How a supervisor starts workers: as copies that share its memory, or as programs of "
            "their own. Default: fork on Linux where no thread runs, else spawn.",
        )
        parser.add_argument(
            "--reload",
            action="store_true",
            default=None,
            help="Reload the code when a file of the project has changed. Default while DEBUG is on, for one "
            "process without --burst.",
        )
        parser.add_argument(
            "--noreload",
            action="store_false",
            dest="reload",
            help="Never reload the code.",
        )
        parser.add_argument(
            "--max-jobs",
            type=int,
            metavar="N",
            help="End after so many jobs, when those that run have ended; a supervisor starts another.",
        )
        parser.add_argument(
            "--max-memory",
            type=int,
            metavar="MB",
            help="The same when the process has grown to so many megabytes.",
        )
        parser.add_argument(
            "--health-port",
            metavar="[HOST:]PORT",
            help="Answer health probes over HTTP there: /live and /ready, for all processes together.",
        )
        parser.add_argument(
            "--watchdog",
            type=float,
            metavar="SECONDS",
            help="End a worker of which a loop is stuck for so long; a supervisor starts another.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        hold_lifeline()
        set_up_logging(options["verbosity"], options["logfile"], options["log_format"], self.stderr)
        try:
            config = self._config(options)
            limits = _limits(options)
            processes = _processes(options)
            reload = self._reloads(options, processes)
            watchdog = _watchdog(options)
            use_config(config)
            supervision = Supervision.from_environment()
            if supervision is None and not options["skip_checks"]:
                self.check(tags=[checks.WORKER_TAG], include_deployment_checks=True)
            if (processes > 1 or reload) and supervision is None:
                if is_trial():
                    return
                supervision = _supervise(processes, reload, config, options)
                if supervision is None:
                    return
            door = None if supervision is not None else _health_door(options)
            launcher = Launcher(
                get_store(),
                config,
                burst=options["burst"],
                limits=limits,
                watchdog=watchdog,
                door=door,
                supervision=supervision,
            )
        except CogworkerError as error:
            raise CommandError(str(error)) from error
        launcher.run()

    def _reloads(self, options: dict[str, Any], processes: int) -> bool:
        """Whether this is a worker that reloads its code, as asked or by default."""
        wish: bool | None = options["reload"]
        if wish:
            for option, given in (("--processes", processes > 1), ("--burst", options["burst"])):
                if given:
                    raise CommandError(f"--reload and {option} exclude each other; leave one away.")
        possible = (
            os.name == "posix"
            and getattr(self, "_called_from_command_line", False)
            and threading.current_thread() is threading.main_thread()
        )
        if wish and not possible:
            raise CommandError(
                "--reload works on POSIX systems, and where runworker was called by a command line of its own."
            )
        if wish is None:
            return possible and is_debug() and processes == 1 and not options["burst"]
        return wish

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
        if options["async_queues"] is not None:
            try:
                changes["async_queues"] = parse_queue_names(options["async_queues"])
            except ValueError as error:
                raise CommandError(f"--async-queues: {error}.") from error
        if options["fetch"]:
            changes["fetch"] = options["fetch"]
        if options["strict"]:
            changes["queue_order"] = "strict"
        return dataclasses.replace(config, **changes)


def _supervise(
    processes: int, reload: bool, config: Config, options: dict[str, Any]
) -> Supervision | None:
    """Be a supervisor to its end (`None`), or come back as one of its forked children."""
    door, timeout = _health_door(options), config.shutdown_timeout
    supervisor: Supervisor
    if reload:
        supervisor = Reloader(shutdown_timeout=timeout, door=door)
    else:
        supervisor = Supervisor(
            processes,
            shutdown_timeout=timeout,
            burst=options["burst"],
            method=options["start_method"],
            door=door,
        )
    try:
        return supervisor.run()
    except ChildProcessError as error:
        raise CommandError(str(error)) from error


def _processes(options: dict[str, Any]) -> int:
    number = _positive(options, "processes", "a whole number from 1") or 1
    if number > 1:
        if os.name != "posix":
            raise CommandError(
                f"--processes {number}: on this system a worker is one process. Start several workers."
            )
        if threading.current_thread() is not threading.main_thread():
            raise CommandError("--processes needs the main thread, where signals arrive.")
    return number


def _limits(options: dict[str, Any]) -> Limits:
    jobs = _positive(options, "max_jobs", "a whole number from 1")
    memory = _positive(options, "max_memory", "a whole number of megabytes from 1")
    if memory is not None:
        now = resident_kb()
        if now is None:
            raise CommandError("--max-memory: this system does not tell how large a process is.")
        if now >= memory * 1024:
            raise CommandError(
                f"--max-memory {memory}: the process has {now // 1024} MB before the first job; the "
                "limit would be reached at once."
            )
    return Limits(jobs=jobs, memory_mb=memory)


def _watchdog(options: dict[str, Any]) -> float | None:
    seconds: float | None = options["watchdog"]
    if seconds is not None and not SHORTEST_WATCHDOG <= seconds <= LONGEST_WATCHDOG:
        raise CommandError(
            f"--watchdog is {seconds:g}; it takes {SHORTEST_WATCHDOG:.0f} to {LONGEST_WATCHDOG:.0f} "
            "seconds. A loop that waits for a Redis which does not answer may need about ten."
        )
    return seconds


def _health_door(options: dict[str, Any]) -> HealthDoor | None:
    wanted: str | None = options["health_port"]
    if wanted is None:
        return None
    host, _, number = wanted.rpartition(":")
    if not number.isascii() or not number.isdigit() or int(number) > 65_535:
        raise CommandError(
            f"--health-port is {wanted}; it takes a port from 0 (any free one) to 65535, with an address "
            "and a colon before it where not all addresses are meant."
        )
    try:
        door = HealthDoor(host.strip("[]"), int(number))
    except OSError as error:
        raise CommandError(f"--health-port {wanted} cannot be opened: {error}.") from error
    logging.getLogger("django_cogworker").info("Health probes are answered on port %d.", door.port)
    return door


def _positive(options: dict[str, Any], name: str, allowed: str) -> int | None:
    number: int | None = options[name]
    if number is not None and number < 1:
        raise CommandError(f"--{name.replace('_', '-')} is {number}; it takes {allowed}.")
    return number


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
