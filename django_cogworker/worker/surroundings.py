"""What Django keeps per thread, tidied around each job of a processor.

Database connections that are broken or too old are closed before and after the job in the thread
that used them; the query log of `DEBUG` is emptied; a language or time zone that the job activated
does not leak into the next one. A transaction that a job left open is rolled back with a warning:
the next job would otherwise run inside it. A thread that waits for its next job closes what reaches its age
meanwhile, so that a night without jobs keeps no connection open.

Coroutines of the loop share a thread and its connections. What is only too old is left to those that still
run and have used it: one may be reading rows from it.
"""

from __future__ import annotations

import logging
import time

from django.db import connections, reset_queries
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone, translation

logger = logging.getLogger("django_cogworker")


def before_job(*, shared: bool = False) -> None:
    initialized = connections.all(initialized_only=True)
    if initialized:
        reset_queries()
        for each in initialized:
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
    for each in connections.all(initialized_only=True):
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
    translation.deactivate()
    timezone.deactivate()
    for each in connections.all(initialized_only=True):
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
    """`after_job`; what goes wrong there is logged and not raised."""
    try:
        after_job(jid, shared=shared)
    except Exception:
        logger.exception("Tidying up after job %s failed.", jid, extra={"jid": jid})


def thread_ends() -> None:
    connections.close_all()
