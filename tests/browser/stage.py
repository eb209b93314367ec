"""What stands behind the browser: a Redis, a web server, and whatever a test puts there.

One stage for all tests here; each begins with an empty Redis. The test's own process pushes jobs and asks the
API by `ask`, in a thread of its own: the browser's client keeps an event loop in the main one, where our code
would think that it was called by a coroutine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from django_cogworker import api
from tests.browser.jobs import Breaks, Tells
from tests.project.jobs import Append, AppendLater, FailOnce
from tests.support.project import Journal
from tests.support.redis_server import RedisServer, free_port
from tests.support.waiting import wait_until
from tests.support.worker import ROOT, WorkerProcess

T = TypeVar("T")

SETTINGS = "tests.browser.settings"
NAME, PASSWORD = "root", "only for tests"
PREPARE = f"""
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django.contrib.auth.models import User
User.objects.create_superuser({NAME!r}, password={PASSWORD!r})
"""
LONG = "a-rather-long-name-of-a-queue-that-somebody-gave-it"


class Stage:
    def __init__(self, directory: Path, redis: RedisServer, theme: str = "") -> None:
        self.redis = redis
        self.theme = theme
        #: Of somebody who has logged in.
        self.cookies: Any = None
        self.journal = Journal(directory)
        self.env = {
            **self.journal.env,
            "COGWORKER_REDIS_URL": redis.url,
            "COGWORKER_TEST_DB": str(directory / "db.sqlite3"),
            "COGWORKER_TEST_THEME": theme,
            "DJANGO_RUNSERVER_HIDE_WARNING": "true",
        }
        self.address = f"http://127.0.0.1:{free_port()}"
        self.server = self._process(
            "--noreload", "--skip-checks", self.address.removeprefix("http://"), command="runserver"
        )
        self.workers: list[WorkerProcess] = []
        self._elsewhere = ThreadPoolExecutor(1)

    def _process(self, *args: str, command: str = "runworker") -> WorkerProcess:
        return WorkerProcess(*args, command=command, settings=SETTINGS, env=self.env)

    def open(self) -> None:
        self.server.start()
        # Meanwhile.
        subprocess.run([sys.executable, "-c", PREPARE], env=self.server.env, check=True, cwd=ROOT)
        self.server.wait_for_line("development server at")

    def close(self) -> None:
        self.empty()
        self.server.close()
        self._elsewhere.shutdown()

    def empty(self) -> None:
        """End the workers and leave nothing in Redis."""
        for each in self.workers:
            each.close()
        self.workers.clear()
        self.redis.client().flushall()

    def ask(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        return self._elsewhere.submit(call, *args, **named).result(20)

    def push(self, job: Any, *args: Any, **options: Any) -> str:
        return str(self.ask(lambda: job.set(on_commit=False, **options).perform_async(*args)))

    def start_worker(self, *args: str) -> WorkerProcess:
        worker = self._process("-c", "3", "--noreload", *args)
        self.workers.append(worker)
        worker.start().wait_for_line("works as")
        return worker

    def fill(self, number: int = 1) -> None:
        """A worker at work, and jobs in every state that a job can be in: so many that are scheduled, that wait
        for another attempt and that are dead.
        """
        self.start_worker("-q", "default,2", "-q", "mail")
        self.push(Append, "<i>ran</i>", tags=["good"])
        for _ in range(number):
            self.push(FailOnce, "dead")
            self.push(Breaks, "the spring")
            self.ask(lambda: Append.set(on_commit=False).perform_in(3600, "later"))
        self.push(Tells, "gate")
        self.push(AppendLater, "nobody reads this queue")
        self.push(Append, "x" * 300, queue=LONG)
        self.ask(api.Queue("paused").pause)
        self.push(Append, "not now", queue="paused")
        self.wait_for_stats(processed=1, dead=number, retrying=number, scheduled=number)
        wait_until(lambda: self.ask(lambda: [each.busy for each in api.ProcessSet()]) == [1])

    def wait_for_stats(self, **wanted: int) -> None:
        def are_as_wanted() -> bool:
            stats = self.ask(api.Stats.now)
            return {each: getattr(stats, each) for each in wanted} == wanted

        wait_until(are_as_wanted, timeout=20, message=lambda: repr(self.ask(api.Stats.now)))

    def add_neighbour(self) -> None:
        """A worker as its beat writes it, on a machine with such a name as orchestrators give, and at full load."""
        identity, now = "shop-worker-7d9f8b6c5d-x2k4q:1234567:0123456789ab", time.time()
        info = {"hostname": "shop-worker-7d9f8b6c5d-x2k4q", "pid": 1_234_567, "concurrency": 100}
        info |= {"queues": ["critical", "default", "default", "mail", "reports", LONG, "low"]}
        info |= {"started_at": now - 1e5, "version": "1", "python": "3.13", "rss_kb": 5_000_000}
        client = self.redis.client()
        client.sadd("cogworker:processes", identity)
        beat: Any = {"info": json.dumps(info), "busy": 100, "quiet": "false", "beat": now}
        client.hset(f"cogworker:process:{identity}", mapping=beat)
