"""What Django keeps per thread, tidied around each job of a processor.

Database connections that are broken or too old are closed before and after the job in the thread
that used them; the query log of `DEBUG` is emptied. A transaction that a job left open is rolled back with a
warning: the next job would otherwise run inside it. A thread that waits for its next job closes what reaches its
age meanwhile, so that a night without jobs keeps no connection open. Which connections a thread has is noted as
they open, for most jobs come after one that opened none, and to ask Django costs more than such a job.

A language, a time zone or another context variable that a job sets does not leak into the next one: a
processor runs each in a context of its own (`contextvars`), where Django keeps the first two as well. Threads
that do not are tidied of them by `tidy`.

Coroutines of the loop share a thread and its connections. What is only too old is left to those that still
run and have used it: one may be reading rows from it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.utils import timezone, translation

logger = logging.getLogger("django_cogworker")


class _Opened(threading.local):
    """The connections that have been opened in this thread."""

    def __init__(self) -> None:
        self.connections: list[BaseDatabaseWrapper] = []


_opened = _Opened()


def _note_opened(connection: BaseDatabaseWrapper, **_: Any) -> None:
    if connection not in _opened.connections:
        _opened.connections.append(connection)


connection_created.connect(_note_opened, dispatch_uid="django_cogworker.surroundings")


def before_job(*, shared: bool = False) -> None:
    for each in _opened.connections:
        each.queries_log.clear()
        _close_if_done(each, shared)


def _close_if_done(connection: BaseDatabaseWrapper, shared: bool) -> None:
    """Where other jobs are in the midst of using it (`shared`), no age is too old."""
    close_at = connection.close_at
    if shared:
        connection.close_at = None
    try:
        connection.close_if_unusable_or_obsolete()
    finally:
        connection.close_at = close_at


def close_aged() -> float | None:
    """Close the connections of this thread that are too old by now; seconds until the next one is."""
    next_one = None
    for each in _opened.connections:
        if each.connection is None or each.close_at is None or each.in_atomic_block:
            continue
        left = each.close_at - time.monotonic()
        if left > 0:
            next_one = left if next_one is None else min(left, next_one)
            continue
        try:
            each.close()
        except Exception:
            logger.exception("The idle connection to the database %r cannot be closed.", each.alias)
    return next_one


def after_job(jid: str, *, shared: bool = False) -> None:
    for each in _opened.connections:
        if each.in_atomic_block:
            logger.warning(
                "Job %s left a transaction open on the database %r; it is rolled back.",
                jid,
                each.alias,
                extra={"jid": jid},
            )
            each.in_atomic_block = False
            each.savepoint_ids = []
            each.atomic_blocks = []
            each.needs_rollback = False
            each.run_on_commit = []
            each.close()
        else:
            _close_if_done(each, shared)


def tidy(jid: str, *, shared: bool = False) -> None:
    """`after_job` in a thread that runs job after job in one context; what goes wrong is logged and not raised."""
    translation.deactivate()
    timezone.deactivate()
    tidy_connections(jid, shared=shared)


def tidy_connections(jid: str, *, shared: bool = False) -> None:
    """`after_job`; what goes wrong there is logged and not raised."""
    try:
        after_job(jid, shared=shared)
    except Exception:
        logger.exception("Tidying up after job %s failed.", jid, extra={"jid": jid})


def taken_along() -> Callable[[], None]:
    """Language and time zone of this thread, to be activated in another one by what is returned.

    Django keeps them for one thread, so what middleware activates in a helper would not reach its coroutine.
    """
    language: Any = translation.get_language()  # `None` where translation is off
    zone = timezone.get_current_timezone()

    def activate() -> None:
        if translation.get_language() != language:
            if language is None:
                translation.deactivate_all()
            else:
                translation.activate(language)
        if timezone.get_current_timezone() != zone:
            timezone.activate(zone)

    return activate


def thread_ends() -> None:
    connections.close_all()
