"""Assertions about collected jobs. They need fake mode and raise `TestModeError` outside it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from django_cogworker.client.transport import collecting_transport
from django_cogworker.payload.arguments import unpack_args, unpack_kwargs

#: Seconds by which a due time may differ from the one asked for.
CLOSE = 1.0


def assert_enqueued(
    job_class: Any,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue: str | None = None,
    at: dt.datetime | float | None = None,
    count: int | None = None,
) -> list[dict[str, Any]]:
    """Assert that a job of the class is waiting that fits all that is given; the payloads that do.

    `at` fits within a second. With `count` exactly so many have to fit, without it at least one.
    """
    every, fitting = _fitting(job_class, args, kwargs, queue, at)
    if not fitting if count is None else len(fitting) != count:
        wanted = "at least one" if count is None else str(count)
        raise AssertionError(
            f"{job_class.job_name}: {len(fitting)} fitting jobs, wanted {wanted}"
            f"{_asked(args, kwargs, queue, at)}. Waiting: {_listed(every)}"
        )
    return fitting


def assert_not_enqueued(
    job_class: Any,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    queue: str | None = None,
    at: dt.datetime | float | None = None,
) -> None:
    """Assert that no job of the class is waiting that fits all that is given."""
    _, fitting = _fitting(job_class, args, kwargs, queue, at)
    if fitting:
        raise AssertionError(
            f"{job_class.job_name}: {len(fitting)} fitting jobs, wanted none"
            f"{_asked(args, kwargs, queue, at)}. Fitting: {_listed(fitting)}"
        )


def _fitting(
    job_class: Any,
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None,
    queue: str | None,
    at: dt.datetime | float | None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    every = collecting_transport("assert_enqueued").jobs(job_class.job_name)
    moment = at.timestamp() if isinstance(at, dt.datetime) else at
    fitting = [
        each
        for each in every
        if (args is None or unpack_args(each["args"]) == list(args))
        and (kwargs is None or unpack_kwargs(each.get("kwargs", {})) == dict(kwargs))
        and (queue is None or each["queue"] == queue)
        and (moment is None or abs(each.get("at", 0.0) - moment) <= CLOSE)
    ]
    return every, fitting


def _asked(args: Any, kwargs: Any, queue: Any, at: Any) -> str:
    given = {"args": args, "kwargs": kwargs, "queue": queue, "at": at}
    named = [f"{name}={value!r}" for name, value in given.items() if value is not None]
    return f" with {', '.join(named)}" if named else ""


def _listed(payloads: list[dict[str, Any]]) -> str:
    if not payloads:
        return "none."
    shown = [
        f"args={unpack_args(each['args'])!r} kwargs={unpack_kwargs(each.get('kwargs', {}))!r} "
        f"queue={each['queue']!r} at={each.get('at')!r}"
        for each in payloads[:10]
    ]
    more = f" … and {len(payloads) - 10} more" if len(payloads) > 10 else ""
    return "; ".join(shown) + more + "."
