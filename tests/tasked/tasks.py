"""Tasks of all kinds."""

from __future__ import annotations

import asyncio
from typing import Any

from django_cogworker import KILL, current_job
from django_cogworker.tasks import task
from django_cogworker.tasks.compat import task_finished, task_started
from tests.project import journal


def soon(count: int) -> float:
    return 0.0


class Gone(Exception):
    """What a task looked for is not there any more."""


@task
def add(left: int, right: int = 0) -> int:
    journal.write(f"add {left} {right}")
    return left + right


@task
async def add_later(left: int, right: int) -> int:
    await asyncio.sleep(0)
    return left + right


@task(takes_context=True, retry=2, retry_in=soon)
def told(context: Any, fails: int) -> list[Any]:
    """Fail so many times, then return what the context said."""
    result = context.task_result
    journal.write(f"attempt {context.attempt} {len(result.errors)} {len(result.worker_ids)}")
    if context.attempt <= fails:
        raise ValueError(f"fails {context.attempt}")
    return [context.attempt, result.id, current_job().jid, str(result.status)]


@task(takes_context=True)
async def told_later(context: Any) -> list[Any]:
    await asyncio.sleep(0)
    return [context.attempt, context.task_result.id]


@task(retry=False)
def fail() -> None:
    raise ValueError("it fails")


@task
def unserialisable() -> Any:
    journal.write("unserialisable")
    return object()


@task(discard_on=(Gone,))
def discarded() -> None:
    raise Gone("nothing there")


@task(retry_in=lambda: KILL)
def killed() -> None:
    raise ValueError("no use")


@task(retry=1, retry_in=lambda: 3.0)
def fail_once(name: str) -> None:
    journal.write(f"attempt {current_job().attempt} {name}")
    if current_job().attempt == 1:
        raise ValueError(name)


@task
def wait(name: str) -> str:
    """Say that it began, wait for the file `name`, say that it ended."""
    journal.write(f"started {name}")
    journal.wait_for_file(name)
    journal.write(f"finished {name}")
    return name


@task(unique="until_executed", result_ttl=600)
def once(name: str) -> None:
    journal.write(f"once {name}")


@task(unique="until_executed", on_conflict="raise")
def once_or_error(name: str) -> None: ...


@task(expires_in=0.001)
def late() -> None: ...


@task(on_commit=False, tags=["blue"], timeout=30, retry=3)
def optioned() -> None: ...


@task
def nests(value: Any) -> Any:
    return value


def log_signals() -> None:
    """Write each signal to the journal; one receiver is broken."""

    def started(task_result: Any, **kwargs: Any) -> None:
        journal.write(f"signal started {task_result.status} {task_result.attempts}")

    def finished(task_result: Any, **kwargs: Any) -> None:
        journal.write(f"signal finished {task_result.status} {len(task_result.errors)}")

    def broken(**kwargs: Any) -> None:
        raise RuntimeError("a broken receiver")

    for signal, receiver in ((task_started, started), (task_finished, finished)):
        signal.connect(broken, weak=False)
        signal.connect(receiver, weak=False)
