"""Pushes that wait for a commit.

A job that is enqueued inside `transaction.atomic()` must not run before the rows it needs are
there, and not at all after a rollback. So it waits as a `Pending` until every database alias that
was inside an atomic block of this thread has committed (or the one that was named). A rollback
drops the commit hook and with it the only reference to the `Pending`: nothing has to be told.

Test modes look at what waits here, since the transaction of a `TestCase` never commits.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence

from django.db import connections, transaction

from django_cogworker.exceptions import ConfigurationError
from django_cogworker.store.values import Outgoing

_numbers = itertools.count()
_waiting: weakref.WeakSet[Pending] = weakref.WeakSet()
_waiting_lock = threading.Lock()


def _renew_lock() -> None:
    """A fork may copy the lock while another thread, which the child does not have, holds it."""
    global _waiting_lock
    _waiting_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class Pending:
    """Jobs that wait for a commit, in the thread that enqueued them."""

    __slots__ = (
        "__weakref__",
        "_aliases",
        "_any_alias",
        "_committed",
        "_push",
        "jobs",
        "number",
        "thread",
        "transport",
    )

    def __init__(
        self,
        jobs: Sequence[Outgoing],
        push: Callable[[Sequence[Outgoing]], None],
        any_alias: bool,
        transport: object,
    ) -> None:
        self.jobs = list(jobs)
        #: The one in force when they were enqueued: a test mode looks at its own alone.
        self.transport = transport
        self.number = next(_numbers)
        self.thread = threading.get_ident()
        self._push = push
        self._any_alias = any_alias
        self._aliases: set[str] = set()
        self._committed: set[str] = set()

    def wait_for(self, aliases: Iterable[str]) -> None:
        for alias in aliases:
            self._aliases.add(alias)
            transaction.on_commit(_Committed(self, alias), using=alias)

    def deliver(self, job: Outgoing) -> None:
        """Push one of the jobs now, as if all had committed: a test runs it."""
        self.jobs.remove(job)
        self._push([job])

    def committed(self, alias: str) -> None:
        self._aliases.discard(alias)
        self._committed.add(alias)
        if self._aliases:
            return
        # Another alias may have been opened meanwhile, and be open still. One that has committed is
        # not waited for twice: what is open there now is another transaction (or a test's own, when
        # `captureOnCommitCallbacks` calls us, and it would call us for ever).
        opened = open_aliases() if self._any_alias else []
        later = [each for each in opened if each not in self._committed]
        if later:
            self.wait_for(later)
            return
        jobs, self.jobs = self.jobs, []
        with _waiting_lock:
            _waiting.discard(self)
        if jobs:
            self._push(jobs)


class _Committed:
    """The commit hook. It holds the only strong reference to its `Pending`."""

    __slots__ = ("alias", "pending")

    def __init__(self, pending: Pending, alias: str) -> None:
        self.pending = pending
        self.alias = alias

    def __call__(self) -> None:
        self.pending.committed(self.alias)


def open_aliases() -> list[str]:
    """The database aliases of this thread that are inside an atomic block."""
    return [each.alias for each in connections.all(initialized_only=True) if each.in_atomic_block]


def aliases_to_wait_for(on_commit: bool | str) -> list[str]:
    """Whose commits a push has to wait for now: none, all open ones, or the one named."""
    if on_commit is False:
        return []
    if on_commit is True:
        return open_aliases()
    if on_commit not in connections.settings:
        raise ConfigurationError(
            f"on_commit={on_commit!r} names a database that DATABASES does not have."
        )
    return [on_commit] if connections[on_commit].in_atomic_block else []


def defer(
    jobs: Sequence[Outgoing],
    aliases: Sequence[str],
    push: Callable[[Sequence[Outgoing]], None],
    *,
    any_alias: bool,
    transport: object = None,
) -> None:
    """Hand `jobs` to `push` once `aliases` have committed. `push` must not raise."""
    pending = Pending(jobs, push, any_alias, transport)
    with _waiting_lock:
        _waiting.add(pending)
    pending.wait_for(aliases)


def waiting(transport: object) -> list[Pending]:
    """What waits for that transport in this thread, oldest first; asked from a coroutine, what waits in
    any thread.

    The synchronous code of a coroutine, and so its transactions, run in another thread than itself.
    """
    thread = None if _in_coroutine() else threading.get_ident()
    with _waiting_lock:
        found = [each for each in _waiting if thread in (None, each.thread)]
    found = [each for each in found if each.transport is transport]
    return sorted(found, key=lambda each: each.number)


def _in_coroutine() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
