"""Runs one job: arguments, context, middleware, `perform`.

Used by processors and by the test modes. It knows nothing of Redis, tickets or retries: what the
job raises, it raises.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from types import CoroutineType
from typing import Any

from asgiref.sync import async_to_sync

from django_cogworker.features import registry as features
from django_cogworker.jobs.context import JobContext, enter
from django_cogworker.jobs.definition import Definition
from django_cogworker.payload.arguments import rows_of, unpack_args, unpack_kwargs
from django_cogworker.payload.failure import failures
from django_cogworker.worker.chain import ServerChain

logger = logging.getLogger("django_cogworker.jobs")


async def _awaited(coroutine: Awaitable[Any]) -> Any:
    return await coroutine


def arguments_of(payload: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments as the job gets them; rows that they refer to are loaded. Raises `MissingRow`."""
    rows = rows_of(payload)
    packed = payload.get("kwargs")
    args = unpack_args(payload.get("args") or [], rows)
    return args, unpack_kwargs(packed, rows) if packed else {}


class Runner:
    """Runs jobs through one server chain."""

    def __init__(self, chain: ServerChain, stopping: Callable[[], bool] = lambda: False) -> None:
        self._chain = chain
        self._stopping = stopping
        self._listeners = features.listeners()
        self._cancellers = tuple(features.taking_part("cancelled"))
        self._watchers = features.taking_part("watch")
        self._fields = features.fields()

    def run(
        self,
        definition: Definition,
        payload: dict[str, Any],
        failed: Callable[[BaseException], None] | None = None,
    ) -> Any:
        """Run the job; its return value. `failed` hears what `perform` raised before any middleware
        does.
        """
        context = self._context_of(payload)
        plain = payload.keys().isdisjoint(self._fields)
        before = enter(context)
        try:
            job, call = definition.make(context)

            def own_code() -> Any:
                args, kwargs = arguments_of(payload)
                result = call(*args, **kwargs)
                # A decorator may hide that `perform` is a coroutine function.
                if definition.is_async or type(result) is CoroutineType:
                    return async_to_sync(_awaited)(context.awaiting(result))
                return result

            def perform() -> Any:
                ends = () if plain else self._watch(context)
                try:
                    return context.run(own_code)
                except BaseException as error:
                    if failed is not None:
                        failed(error)
                    raise
                finally:
                    for end in ends:
                        end()

            context.perform = perform
            result = (self._chain.plain if plain else self._chain.whole)(job, payload)
            if context.ended_by is not None:  # a middleware swallowed it
                raise context.ended_by
            return result
        finally:
            enter(before)

    def _context_of(self, payload: dict[str, Any]) -> JobContext:
        attempt = failures(payload) + 1
        return JobContext(payload, attempt, self._stopping, self._listeners, self._cancellers)

    def _watch(self, context: JobContext) -> Sequence[Callable[[], None]]:
        """Tell the watchers that the job's own code begins; whom to tell that it is over."""
        ends = []
        for watch in self._watchers:
            try:
                end = watch(context)
            except Exception:
                logger.exception("A feature failed to watch job %s.", context.jid)
                continue
            if end is not None:
                ends.append(end)
        return ends
