"""Where unique jobs take part in the life of a job."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from django.utils.translation import gettext as _

from django_cogworker import clock
from django_cogworker.client.hooks import PushParts
from django_cogworker.conf import get_config
from django_cogworker.exceptions import DuplicateJob, InvalidPayload
from django_cogworker.features.base import Feature, Reason, Refused, Run
from django_cogworker.features.unique.digest import key_of
from django_cogworker.features.unique.locks import RECOVERY_WAIT, Lock, lock_of
from django_cogworker.features.unique.options import (
    OPTIONS,
    UNTIL_EXECUTED,
    UNTIL_EXECUTING,
    check_conflict,
    check_mode,
    check_ttl,
    check_unique_on,
)
from django_cogworker.features.unique.running import Running
from django_cogworker.jobs.context import JobContext
from django_cogworker.store.keys import Keys
from django_cogworker.store.store import get_store
from django_cogworker.store.values import Effect

#: A job that waits for another one to end is told; it looks by itself after so many seconds, from the one to the other.
FIRST_LOOK, LAST_LOOK = 5.0, 15.0
MAX_KEY = 200

_running = Running()


def _push_side(push: Callable[[dict[str, Any]], str | None]) -> Callable[..., str | None]:
    """Gives the payload of a unique job its key, and has it tracked."""

    def with_key(payload: dict[str, Any]) -> str | None:
        if "unique" in payload or "unique_on" in payload or "on_conflict" in payload:
            _complete(payload)
        return push(payload)

    return with_key


def _complete(payload: dict[str, Any]) -> None:
    unique_on = payload.pop("unique_on", None)
    if not payload.get("unique"):
        for name in ("unique", "unique_key", "unique_ttl", "on_conflict"):
            payload.pop(name, None)
        return
    checks = {"unique": check_mode, "unique_ttl": check_ttl, "on_conflict": check_conflict}
    for name, check in checks.items():
        if name in payload:
            payload[name] = _checked(payload[name], name, check)
    payload.setdefault("track", True)
    given = payload.get("unique_key")
    if given is None or unique_on is not None:
        unique_on = _checked(unique_on, "unique_on", check_unique_on)
        payload["unique_key"] = key_of(payload, unique_on, payload["unique"])
    elif not (
        isinstance(given, str)
        and given.isprintable()
        and " " not in given
        and 0 < len(given) <= MAX_KEY
    ):
        raise InvalidPayload(
            f"'unique_key' is a text of 1 to {MAX_KEY} characters without spaces, not {given!r}; leave it out."
        )


def _checked(value: Any, name: str, check: Callable[[Any], Any]) -> Any:
    try:
        return check(value)
    except ValueError as error:
        raise InvalidPayload(f"{name!r} is {value!r}; allowed is {error}.") from None


def _lock(payload: dict[str, Any]) -> Lock | None:
    if not payload.get("unique"):
        return None
    return lock_of(Keys(get_config().key_prefix), payload)


class Unique(Feature):
    """See the package."""

    name = "unique"
    options = OPTIONS
    client_middleware: ClassVar[tuple[Callable[..., Any], ...]] = (_push_side,)
    concerns = frozenset({"unique"})

    def pushed(self, payload: dict[str, Any]) -> PushParts | None:
        lock = _lock(payload)
        if lock is None or not lock.held_by_push:
            return None
        wait = max(0.0, payload.get("at", 0.0) - clock.now())
        guard = lock.guard(wait, takes=payload.get("on_conflict") == "replace")
        return PushParts((guard,), (lock.listed(wait),))

    def refused(self, payload: dict[str, Any], holder: str) -> None:
        if payload.get("unique") and payload.get("on_conflict") == "raise":
            raise DuplicateJob(
                f"{payload['class']} was not enqueued: job {holder} has the lock {payload['unique_key']}.",
                holder=holder,
            )

    def graduated(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        lock = _lock(payload)
        if lock is None:
            return ()
        return lock.held() if _is_kept_between_runs(lock, payload) else lock.given_up()

    def admit(self, payload: dict[str, Any]) -> Refused | None:
        lock = _lock(payload)
        if lock is None:
            return None
        store = get_store()
        if not lock.held_by_push:
            refusal = store.claim(lock.guard(), (lock.listed(),))
            if refusal is None:
                return None
            reason = f"job {refusal.holder} runs, and has the lock {lock.key}"
            into_line = lock.awaited(_waits_since(payload))
            return Refused("waiting", reason, _next_look(), (into_line,))
        client: Any = store.client
        if client.hexists(lock.replaced, lock.jid):
            return Refused("replaced", f"a newer job has taken over its lock {lock.key}")
        if lock.mode == UNTIL_EXECUTING:
            store.apply(lock.freed())
        return None

    def holding_up(self, payload: dict[str, Any], state: str) -> tuple[Reason, ...]:
        lock = _lock(payload)
        if lock is None or state == "working":
            return ()
        pipe: Any = get_store().client.pipeline(transaction=False)
        pipe.get(lock.name)
        pipe.hexists(lock.replaced, lock.jid)
        had, replaced = pipe.execute()
        holder = "" if had is None else had.decode("utf-8", "replace")
        said = {"holder": holder, "key": lock.key}
        if lock.held_by_push and replaced:
            text = _("A newer job has taken over its lock: the worker that comes to it drops it.")
            return (Reason("replaced", text, said),)
        if not lock.held_by_push and holder not in ("", lock.jid):
            text = _("Job %(holder)s runs and has the lock %(key)s, for which it waits.")
            return (Reason("locked", text % said, said),)
        return ()

    def settled(self, run: Run) -> tuple[Effect, ...]:
        lock = _lock(run.payload)
        if lock is None or run.outcome == "finished":
            return ()  # of the latter: see `note`
        if run.outcome in ("waiting", "retrying") and lock.held_by_push:
            kept = run.outcome == "waiting" or lock.mode == UNTIL_EXECUTED
            return lock.held(run.delay) if kept else ()
        if run.outcome == "waiting":
            # It may just have been put in line. Where the lock was freed since it was refused, the first goes on.
            return lock.ended()
        return (*lock.given_up(), *lock.ended())

    def note(self, run: Run) -> Lock | None:
        return _lock(run.payload)

    def digest(self, notes: Sequence[Lock]) -> tuple[Effect, ...]:
        return tuple(effect for lock in notes for effect in lock.ended())

    def requeued(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        lock = _lock(payload)
        if lock is None:
            return ()
        return lock.held() if lock.held_by_push else lock.ended()

    def recovered(self, payload: dict[str, Any], fate: str) -> tuple[Effect, ...]:
        lock = _lock(payload)
        if lock is None:
            return ()
        return lock.held(RECOVERY_WAIT) if lock.held_by_push and fate != "dead" else lock.ended()

    def refiled(self, payload: dict[str, Any], place: str, wait: float) -> tuple[Effect, ...]:
        lock = _lock(payload)
        if lock is None:
            return ()
        if place == "dead":
            return (*lock.given_up(), *lock.ended())
        return lock.held(wait) if _is_kept_between_runs(lock, payload) else lock.given_up()

    def removed(self, payload: dict[str, Any]) -> tuple[Effect, ...]:
        lock = _lock(payload)
        return () if lock is None else (*lock.given_up(), *lock.ended())

    def watch(self, context: JobContext) -> Callable[[], None] | None:
        """Has the lock of the running job extended."""
        lock = _lock(context.payload)
        return None if lock is None or lock.mode == UNTIL_EXECUTING else _running.begins(lock)

    def beat(self) -> None:
        effects = _running.due()
        if effects:
            get_store().apply(effects)


def _is_kept_between_runs(lock: Lock, payload: dict[str, Any]) -> bool:
    """Whether the lock is the job's while it waits: not that of a job which has begun once, if it was to
    be had until then only.
    """
    return lock.mode == UNTIL_EXECUTED or (
        lock.mode == UNTIL_EXECUTING and "retry_count" not in payload
    )


def _next_look() -> float:
    """Seconds; jittered, so that many do not come at once."""
    return random.uniform(FIRST_LOOK, LAST_LOOK)


def _waits_since(payload: dict[str, Any]) -> float:
    """The moment since which it could have run: its place in line."""
    known = [payload.get(each) for each in ("created_at", "at")]
    times = [
        float(each)
        for each in known
        if isinstance(each, (int, float)) and not isinstance(each, bool) and 0 <= each < 1e12
    ]
    return max(times, default=time.time())
