"""Runs the coroutine of one job on the loop, and the server middleware around it in a helper's thread.

Middleware is synchronous. Where there is any, a helper runs the whole chain, and its innermost step waits for the
coroutine. So a middleware sees of an async job what it sees of any other: it is called before, the job is over when
the next callable returns, and what the job raised is raised there. Without any middleware for it no thread is
involved.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async

from django_cogworker.jobs.context import enter
from django_cogworker.worker import surroundings
from django_cogworker.worker.chain import is_bare
from django_cogworker.worker.handling import Turn
from django_cogworker.worker.helpers import Helpers, Outcome
from django_cogworker.worker.runner import Runner, arguments_of

#: Hears which task runs the job's coroutine, and `None` when it has ended.
Hold = Callable[[asyncio.Task[Any] | None], None]


class LoopRunner(Runner):
    """Runs jobs through one server chain, on the loop that calls it."""

    async def run_here(self, turn: Turn, helpers: Helpers, hold: Hold) -> Any:
        """Run the job; its return value. The caller's task must have a context of its own."""
        payload = turn.payload
        plain = payload.keys().isdisjoint(self._fields)
        context = self._context_of(payload)
        enter(context)
        job, call = turn.definition.make(context)

        async def perform() -> Any:
            hold(asyncio.current_task())
            ends = () if plain else self._watch(context)
            try:
                if turn.has_rows:  # they are loaded where the job's own queries are made
                    args, kwargs = await sync_to_async(arguments_of)(payload)
                else:
                    args, kwargs = arguments_of(payload)
                result = call(*args, **kwargs)
                if not inspect.iscoroutine(result):
                    return result
                return await context.awaiting(result)
            finally:
                hold(None)
                for end in ends:
                    end()

        chain = self._chain.plain if plain else self._chain.whole
        if is_bare(chain):
            return await perform()
        loop = asyncio.get_running_loop()

        async def outcome(activate: Callable[[], None]) -> Outcome:
            try:
                activate()
                return await perform(), None
            except BaseException as error:  # an exit would end the loop
                return None, error

        def wait_for_it() -> Any:
            value, error = asyncio.run_coroutine_threadsafe(
                outcome(surroundings.taken_along()), loop
            ).result()
            if error is None:
                return value
            if not isinstance(error, asyncio.CancelledError):  # that may be the stop's doing
                turn.failed(error)
            raise error

        context.perform = wait_for_it
        result = await helpers.run(lambda: chain(job, payload))
        if context.ended_by is not None:  # a middleware swallowed it
            raise context.ended_by
        return result
