"""Help for the tests of workers with async queues and the jobs of `tests/asyncjobs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django_cogworker.store.scripts import script
from tests.settings import INSTALLED_APPS
from tests.support.worker import WorkerProcess

CONF: dict[str, Any] = {
    "INSTALLED_APPS": [*INSTALLED_APPS, "tests.asyncjobs"],
    "COGWORKER_ASYNC_QUEUES": ["hooks"],
}


def start(start_worker: Any, *args: str, **conf: Any) -> WorkerProcess:
    """A worker with two processors and an async queue `hooks`; `env` and `url` as of `start_worker`."""
    options = {name: conf.pop(name) for name in ("env", "url") if name in conf}
    worker: WorkerProcess = start_worker("-c", "2", *args, conf={**CONF, **conf}, **options)
    return worker


def looks_at(queue: str) -> Callable[[bytes], bool]:
    """For a rule of the proxy: a call of the fetcher that looks for jobs of this queue."""
    key = f":queue:{queue}\r\n".encode()
    return lambda command: script("exchange").sha.encode() in command and key in command


def waits_for(queue: str) -> Callable[[bytes], bool]:
    """For a rule of the proxy: a listener that waits for a token of this queue."""
    return lambda command: b"BLPOP" in command and f":{queue}:".encode() in command
