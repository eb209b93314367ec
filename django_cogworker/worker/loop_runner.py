"""Runs the coroutine of one job on the loop, and the server middleware around it in a helper's thread.

Middleware is synchronous. Where there is any, a helper runs the whole chain, and its innermost step waits for the
coroutine. So a middleware sees of an async job what it sees of any other: it is called before, the job is over when
the next callable returns, and what the job raised is raised there. Without any middleware no thread is involved.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from django_cogworker.jobs.context import JobContext, enter
from django_cogworker.payload.arguments import unpack_args, unpack_kwargs
from django_cogworker.payload.failure import failures
from django_cogworker.worker.chain import Perform, is_bare
from django_cogworker.worker.handling import Turn
from django_cogworker.worker.helpers import Helpers, Outcome
from django_cogworker.worker.runner import Runner

#: Hears which task runs the job's coroutine, and `None` when it has ended.
Hold = Callable[[asyncio.Task[Any] | None], None]


class LoopRunner(Runner):
    """Runs jobs through one server chain, on the loop that calls it."""

    def __init__(self, chain: Perform, stopping: Callable[[], bool] = lambda: False) -> None:
        super().__init__(chain, stopping)
        self._is_bare = is_bare(chain)

    async def run_here(self, turn: Turn, helpers: Helpers, hold: Hold) -> Any:
        """Run the job; its return value. The caller's task must have a context of its own."""
        payload = turn.payload
        context = JobContext(
            payload, failures(payload) + 1, self._stopping, self._listeners, self._cancellers
        )
        enter(context)
        job, call = turn.definition.make(context)

        async def perform() -> Any:
            hold(asyncio.current_task())
            try:
                args = unpack_args(payload.get("args") or [])
                packed = payload.get("kwargs")
                result = call(*args, **unpack_kwargs(packed)) if packed else call(*args)
                if not inspect.iscoroutine(result):
                    return result
                awaiting = context.awaiting
                return await (result if awaiting is None else awaiting(result))
            finally:
                hold(None)

        if self._is_bare:
            return await perform()
        loop = asyncio.get_running_loop()

        async def outcome() -> Outcome:
            try:
                return await perform(), None
            except BaseException as error:  # an exit would end the loop
                return None, error

        def own_code() -> Any:
            value, error = asyncio.run_coroutine_threadsafe(outcome(), loop).result()
            if error is not None:
                raise error
            return value

        def wait_for_it() -> Any:
            try:
                around = context.around
                return own_code() if around is None else around(own_code)
            except BaseException as error:
                if not isinstance(error, asyncio.CancelledError):  # that may be the stop's doing
                    turn.failed(error)
                raise

        context.perform = wait_for_it
        return await helpers.run(lambda: self._chain(job, payload))
