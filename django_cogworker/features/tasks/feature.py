"""When something is written and told of a task.

The push writes what a result needs, in its own step; all further moves are the status's. Starts and ends are told
to the `seam`, as the signals of `django.tasks` go out from there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from django_cogworker.client.hooks import PushParts
from django_cogworker.exceptions import UnknownJob
from django_cogworker.features.base import Feature, Run, Worker
from django_cogworker.features.status import modes, results
from django_cogworker.features.status.record import PATIENCE
from django_cogworker.features.tasks import record, seam
from django_cogworker.jobs import registry
from django_cogworker.jobs.definition import Definition
from django_cogworker.payload.failure import attempt_record
from django_cogworker.store.values import Effect

logger = logging.getLogger("django_cogworker")

_identity: Callable[[], str] = lambda: modes.HERE  # noqa: E731


def _tell(what: Callable[[], None], payload: dict[str, Any]) -> None:
    try:
        what()
    except Exception:
        logger.exception(
            "Telling of task %s failed.", payload["jid"], extra={"jid": payload["jid"]}
        )


def _around(perform: Callable[[Any, dict[str, Any]], Any]) -> Callable[[Any, dict[str, Any]], Any]:
    """Server middleware, inside that of the status: the record says already that the task runs."""

    def told(job: Any, payload: dict[str, Any]) -> Any:
        if not record.is_task(payload):
            return perform(job, payload)
        teller = seam.teller
        board = modes.board()
        if board is not None:
            return _in_test_mode(board, perform, job, payload)
        if teller is not None:
            _tell(lambda: teller.begins(payload, _identity()), payload)
        return perform(job, payload)

    return told


def _in_test_mode(
    board: modes.Board,
    perform: Callable[[Any, dict[str, Any]], Any],
    job: Any,
    payload: dict[str, Any],
) -> Any:
    """Here there is no settlement: the end is written and told as soon as it is known."""
    errand, teller = seam.errand_of(payload), seam.teller
    if errand is not None:
        errand.taken()  # inline: it is enqueued and runs at once
    if teller is not None:
        _tell(lambda: teller.begins(payload, modes.HERE), payload)
    try:
        result = perform(job, payload)
    except BaseException as error:
        attempt = attempt_record({**payload, "retry_count": 1}, error, "dead", time.time())
        board.write(payload, {"state": "failed", f"{record.ATTEMPT}1": attempt})
        if errand is not None:
            errand.failure = error
        # Whoever wants all of it to end is heard first.
        if teller is not None and not isinstance(error, KeyboardInterrupt):
            run = Run(payload, "dead", error=error)
            _tell(lambda: teller.over(run), payload)
        raise
    board.write(payload, {"state": "complete", "pct": "100", **results.kept(payload, result)})
    if teller is not None:
        _tell(lambda: teller.over(Run(payload, "finished", result=result)), payload)
    return result


def _load(payload: dict[str, Any]) -> Definition | None:
    if seam.load is None or not record.is_task(payload):
        return None
    found: Definition | None = seam.load(payload)
    name = payload["class"]
    if (
        found is None and registry.lookup(name) is None
    ):  # importing its module may have made it known
        raise UnknownJob(
            f"No task {name!r} is known here. A task is found in a module of an installed app, such as "
            "<app>/tasks.py, or in one that such a module imports."
        )
    return found


class TasksFeature(Feature):
    """The guest."""

    name = "tasks"
    server_middleware = (_around,)
    concerns = frozenset({record.MARK})

    def __init__(self) -> None:
        if _load not in registry.loaders:
            registry.loaders.append(_load)

    def pushed(self, payload: dict[str, Any]) -> PushParts | None:
        if not record.is_task(payload):
            return None
        errand = seam.errand_of(payload)
        taken = None if errand is None else errand.taken
        board = modes.board()
        if board is not None:
            board.write(payload, record.field_of(payload))
            return PushParts(taken=taken)
        return PushParts(effects=(record.written(payload),), taken=taken)

    def refused(self, payload: dict[str, Any], holder: str) -> None:
        errand = seam.errand_of(payload)
        if errand is not None:
            errand.holder = holder

    def settled(self, run: Run) -> tuple[Effect, ...]:
        """A job that has waited for long may have outlived its record, which the end then begins anew."""
        payload = run.payload
        created = payload.get("created_at")
        if not record.is_task(payload) or not isinstance(created, (int, float)):
            return ()
        return (record.written(payload),) if time.time() - created > PATIENCE else ()

    def over(self, run: Run) -> None:
        if seam.teller is not None and record.is_task(run.payload):
            seam.teller.over(run)

    def attached(self, worker: Worker) -> None:
        global _identity
        _identity = lambda: worker.identity  # noqa: E731
