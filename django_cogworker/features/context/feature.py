"""Context as a guest: client middleware writes it down, server middleware restores it.

It is written at the call, once: retries and recovered jobs have it as it was. A job that enqueues others passes on
what it was given, for that is what surrounds it then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core import checks

from django_cogworker.client.push import call_memo
from django_cogworker.features.base import Feature
from django_cogworker.features.context.carried import FIELD, carried
from django_cogworker.features.context.checks import check_context

checks.register(check_context, "cogworker")


def _take(push: Callable[[dict[str, Any]], str | None]) -> Callable[..., str | None]:
    """Client middleware: what surrounds the call goes into the payload. It is looked up once a call, not once a job."""

    def taking(payload: dict[str, Any]) -> str | None:
        if FIELD not in payload:
            memo = call_memo()
            found = memo.get(FIELD)
            if found is None:
                found = memo[FIELD] = carried().taken()
            if found:
                payload[FIELD] = found
        return push(payload)

    return taking


def _around(perform: Callable[[Any, dict[str, Any]], Any]) -> Callable[[Any, dict[str, Any]], Any]:
    """Server middleware: the job runs in what surrounded its call."""

    def restoring(job: Any, payload: dict[str, Any]) -> Any:
        if FIELD not in payload:
            return perform(job, payload)
        with carried().restored(payload[FIELD]):
            return perform(job, payload)

    return restoring


class Context(Feature):
    """The guest."""

    name = "context"
    client_middleware = (_take,)
    server_middleware = (_around,)
    concerns = frozenset({FIELD})
