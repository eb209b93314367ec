"""Runs one job: arguments, context, middleware, `perform`.

Used by processors and by the test modes. It knows nothing of Redis, tickets or retries: what the
job raises, it raises.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import CoroutineType
from typing import Any

from asgiref.sync import async_to_sync

from django_cogworker.features import registry as features
from django_cogworker.jobs.context import JobContext, enter
from django_cogworker.jobs.definition import Definition
from django_cogworker.payload.arguments import unpack_args, unpack_kwargs
from django_cogworker.payload.failure import failures
from django_cogworker.worker.chain import Perform


async def _awaited(coroutine: Awaitable[Any]) -> Any:
    return await coroutine


class Runner:
    """Runs jobs through one server chain."""

    def __init__(self, chain: Perform, stopping: Callable[[], bool] = lambda: False) -> None:
        self._chain = chain
        self._stopping = stopping
        self._listeners = features.listeners()
        self._cancellers = tuple(features.taking_part("cancelled"))

    def run(
        self,
        definition: Definition,
        payload: dict[str, Any],
        failed: Callable[[BaseException], None] | None = None,
    ) -> Any:
        """Run the job; its return value. `failed` hears what `perform` raised before any middleware
        does.
        """
        context = JobContext(
            payload, failures(payload) + 1, self._stopping, self._listeners, self._cancellers
        )
        before = enter(context)
        try:
            job, call = definition.make(context)
            packed = payload.get("kwargs")

            def own_code() -> Any:
                args = unpack_args(payload.get("args") or [])
                result = call(*args, **unpack_kwargs(packed)) if packed else call(*args)
                # A decorator may hide that `perform` is a coroutine function.
                if definition.is_async or type(result) is CoroutineType:
                    awaiting = context.awaiting
                    result = result if awaiting is None else awaiting(result)
                    return async_to_sync(_awaited)(result)
                return result

            def perform() -> Any:
                try:
                    around = context.around
                    return own_code() if around is None else around(own_code)
                except BaseException as error:
                    if failed is not None:
                        failed(error)
                    raise

            context.perform = perform
            return self._chain(job, payload)
        finally:
            enter(before)
