"""`manage.py cogworker …`: look and steer from the command line. Each reading verb has `--json`."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

import redis
from django.core.management.base import BaseCommand, CommandError

from django_cogworker.api import (
    Process,
    ProcessSet,
    Queue,
    Stats,
    all_queues,
    counters,
    find_job,
    losses,
)
from django_cogworker.conf import get_config
from django_cogworker.exceptions import CogworkerError
from django_cogworker.management import periodic
from django_cogworker.store.target import resolve
from django_cogworker.worker.health import STALE, judge
from django_cogworker.worker.health_file import project_mark, read_reports


class Command(BaseCommand):
    help = "Shows and steers queues and workers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

        def verb(name: str, text: str) -> ArgumentParser:
            added: ArgumentParser = verbs.add_parser(name, help=text, description=text)
            return added

        for name, text in (
            ("stats", "Counters and sizes."),
            ("queues", "Each queue: size, latency in seconds, paused or not."),
            ("losses", "Worker processes that a supervisor lost, the newest first."),
            ("locks", "Locks of unique jobs: key, class, jid, seconds until it ends by itself."),
            ("workers", "Each worker: identity, running jobs, queues, quiet or not."),
        ):
            verb(name, text).add_argument("--json", action="store_true", help="As JSON.")
        history = verb("history", "Runs that ended, the newest first.")
        history.add_argument("--failed", action="store_true", help="Only those that failed.")
        history.add_argument("--class", dest="job_class", metavar="NAME", help="Of one job class.")
        history.add_argument(
            "--limit", type=int, default=25, metavar="N", help="How many. Default: 25."
        )
        history.add_argument("--json", action="store_true", help="As JSON, with all fields.")
        verb(
            "classes", "Each job class in the last 24 hours: runs, failures, times in seconds."
        ).add_argument("--json", action="store_true", help="As JSON.")
        health = verb(
            "healthcheck",
            "Exit status 0 where the workers on this host are healthy, else 1. Asks no Redis.",
        )
        health.add_argument(
            "--ready",
            action="store_true",
            help="They are also to take jobs: not quiet, not starting.",
        )
        health.add_argument(
            "--max-age",
            type=float,
            default=STALE,
            metavar="SECONDS",
            help=f"How old the last turn of a loop may be. Default: {STALE:.0f}.",
        )
        health.add_argument("--json", action="store_true", help="As JSON.")
        for name, text in (
            ("pause", "Fetch no more from a queue."),
            ("resume", "Fetch again from a queue."),
            ("clear", "Delete every waiting job of a queue."),
        ):
            added = verb(name, text)
            added.add_argument("queue")
            if name == "clear":
                added.add_argument("--yes", action="store_true", help="Do not ask.")
        verb("release", "Delete the lock of a unique job.").add_argument(
            "key", help="As `cogworker locks` shows it."
        )
        found = verb("find", "Where a job is.")
        found.add_argument("jid")
        found.add_argument(
            "--seconds", type=float, default=10.0, help="How long to look. Default: 10."
        )
        found.add_argument("--json", action="store_true", help="As JSON.")
        cancelled = verb("cancel", "Take a waiting job away, or ask the running one to end.")
        cancelled.add_argument("jid")
        cancelled.add_argument(
            "--force", action="store_true", help="Interrupt the running one, as at a time limit."
        )
        for name, text in (
            ("quiet", "Let a worker fetch no more."),
            ("unquiet", "Let a quiet worker work again."),
            ("stop", "Let a worker stop in good order."),
        ):
            verb(name, text).add_argument(
                "identity", help="As `cogworker workers` shows it, or all."
            )

        periodic.add_verbs(verb)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, "_" + options["verb"].replace("-", "_"))(options)
        except CogworkerError as error:
            raise CommandError(str(error)) from error
        except redis.ResponseError as error:
            raise CommandError(f"Redis refuses: {error}") from error
        except (redis.RedisError, OSError) as error:
            raise CommandError(f"Redis cannot be reached: {error}") from error

    # Look.

    def _stats(self, options: dict[str, Any]) -> None:
        stats = {**dataclasses.asdict(Stats.now()), **counters()}
        if options["json"]:
            self.stdout.write(json.dumps(stats))
            return
        del stats["queues"]
        for name, value in stats.items():
            self.stdout.write(f"{name:<12}{value:>12}")

    def _queues(self, options: dict[str, Any]) -> None:
        rows = [
            {
                "name": each.name,
                "size": each.size,
                "latency": round(each.latency, 3),
                "paused": each.paused,
            }
            for each in all_queues()
        ]
        self._table(rows, options["json"], "No queue has held a job yet.")

    def _workers(self, options: dict[str, Any]) -> None:
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
        self._table(rows, options["json"], "No worker lives.")

    def _losses(self, options: dict[str, Any]) -> None:
        self._table(losses(), options["json"], "No worker process was lost.")

    def _history(self, options: dict[str, Any]) -> None:
        from django_cogworker.api.history import History

        page = History().page(
            status="failed" if options["failed"] else None,
            job_class=options["job_class"],
            limit=options["limit"],
        )
        if options["json"]:
            self._table([dataclasses.asdict(each) for each in page.entries], True, "")
            return
        rows = [
            {
                "finished": _moment(each.finished_at),
                "status": each.status,
                "class": each.job_class,
                "jid": each.jid,
                "attempt": each.attempt,
                "seconds": _seconds(each.seconds),
                "wait": _seconds(each.wait),
                "error": each.error_class or "",
            }
            for each in page.entries
        ]
        self._table(rows, False, "No run is kept.")

    def _classes(self, options: dict[str, Any]) -> None:
        from django_cogworker.api.history import class_stats

        stats = class_stats()
        if options["json"]:
            self._table([dataclasses.asdict(each) for each in stats], True, "")
            return
        rows = [
            {
                "class": each.job_class,
                "runs": each.runs,
                "failures": each.failures,
                **{
                    f"{kind}_{name}": _seconds(value)
                    for kind, times in (("run", each.seconds), ("wait", each.wait))
                    for name, value in dataclasses.asdict(times).items()
                },
            }
            for each in stats
        ]
        self._table(rows, False, "No job ended in the last 24 hours.")

    def _locks(self, options: dict[str, Any]) -> None:
        from django_cogworker.api.unique import unique_locks

        rows = [
            {"key": each.key, "class": each.job_class, "jid": each.jid, "ttl": round(each.ttl, 1)}
            for each in unique_locks()
        ]
        self._table(rows, options["json"], "No unique job has a lock.")

    def _healthcheck(self, options: dict[str, Any]) -> None:
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
        self._table(rows, options["json"], "")
        if not verdict.live:
            raise CommandError("A worker is stuck.")
        if options["ready"] and not verdict.ready:
            raise CommandError("A worker is not ready.")

    def _table(self, rows: list[dict[str, Any]], as_json: bool, empty: str) -> None:
        if as_json:
            self.stdout.write(json.dumps(rows))
            return
        if not rows:
            self.stdout.write(empty)
            return
        rows = [{name: _shown(value) for name, value in row.items()} for row in rows]
        widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in rows[0]}
        self.stdout.write("  ".join(name.upper().ljust(width) for name, width in widths.items()))
        for row in rows:
            self.stdout.write("  ".join(row[name].ljust(width) for name, width in widths.items()))

    # Periodic entries.

    def _periodic(self, options: dict[str, Any]) -> None:
        self._table(periodic.rows(options), options["json"], "There is no periodic entry.")

    def _steer_periodic(self, options: dict[str, Any]) -> None:
        self.stdout.write(periodic.steer(options["verb"], options["name"]))

    _periodic_disable = _periodic_enable = _periodic_run = _steer_periodic

    def _find(self, options: dict[str, Any]) -> None:
        found = find_job(options["jid"], budget=options["seconds"])
        if options["json"]:
            self.stdout.write(json.dumps({**dataclasses.asdict(found), "found": bool(found)}))
        elif found:
            told = dataclasses.asdict(found)
            for name in ("state", "place", "queue", "worker", "at"):
                if told[name]:
                    self.stdout.write(f"{name:<8}{told[name]}")
        if not found:
            how_far = "everywhere" if found.everywhere else f"at {found.looked_at} entries"
            raise CommandError(
                f"Job {found.jid} was not found; it was looked for {how_far}."
                + ("" if found.everywhere else " Give it more time: --seconds.")
            )

    # Steer.

    def _cancel(self, options: dict[str, Any]) -> None:
        try:
            from django_cogworker.api import cancel
        except ImportError:
            raise CommandError("The feature that cancels jobs is not there.") from None
        said = {
            "removed": "Removed: it was waiting.",
            "asked": "Asked: the worker that runs it, or comes to it, knows.",
            "ended": "It is over already.",
        }
        self.stdout.write(said[cancel(options["jid"], force=options["force"])])

    def _pause(self, options: dict[str, Any]) -> None:
        changed = self._known_queue(options).pause()
        self.stdout.write("Paused." if changed else "It was paused already.")

    def _resume(self, options: dict[str, Any]) -> None:
        changed = self._known_queue(options).resume()
        self.stdout.write("Resumed." if changed else "It was not paused.")

    def _clear(self, options: dict[str, Any]) -> None:
        queue = self._known_queue(options)
        if not options["yes"]:
            try:
                answer = input(f"Delete all {queue.size} jobs of queue {queue.name}? Type yes: ")
            except EOFError:
                raise CommandError(
                    "Nothing was deleted: there is nobody to ask here; say --yes."
                ) from None
            if answer.strip() != "yes":
                raise CommandError("Nothing was deleted.")
        self.stdout.write(f"{queue.clear()} jobs deleted.")

    def _release(self, options: dict[str, Any]) -> None:
        from django_cogworker.api.unique import release_lock

        key = options["key"]
        if not release_lock(key):
            raise CommandError(f"There is no lock {key!r}; `cogworker locks` lists them.")
        self.stdout.write("Released.")

    @staticmethod
    def _known_queue(options: dict[str, Any]) -> Queue:
        queue = Queue(options["queue"])
        known = [each.name for each in all_queues()]
        if queue.name not in known:
            raise CommandError(
                f"There is no queue {queue.name!r}. Known: {', '.join(known) or 'none yet'}."
            )
        return queue

    def _quiet(self, options: dict[str, Any]) -> None:
        self._ask(options, Process.quiet)

    def _unquiet(self, options: dict[str, Any]) -> None:
        self._ask(options, Process.resume)

    def _stop(self, options: dict[str, Any]) -> None:
        self._ask(options, Process.stop)

    def _ask(self, options: dict[str, Any], ask: Callable[[Process], bool]) -> None:
        wanted = options["identity"]
        living = list(ProcessSet())
        chosen = [each for each in living if wanted in ("all", each.identity)]
        if not chosen:
            known = ", ".join(each.identity for each in living) or "none"
            raise CommandError(f"There is no worker {wanted!r}. Living: {known}.")
        for each in chosen:
            done = ask(each)
            self.stdout.write(f"{each.identity}: {'asked' if done else 'gone'}")


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))
