"""Asking features for effects: a fault of one of them is logged and stops neither the job nor others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from django_cogworker.features import registry
from django_cogworker.features.base import Place, Reason, Run
from django_cogworker.store.values import Effect

logger = logging.getLogger("django_cogworker")

Hook = Callable[..., tuple[Effect, ...]]


class Effects:
    """The effects of all features for one kind of step, named by the method of `Feature`."""

    def __init__(self, method: str) -> None:
        self._method = method
        self._hooks: list[Hook] = registry.taking_part(method)
        self._plain = list(filter(registry.concerns_all, self._hooks))

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def of(self, payload: dict[str, Any], *args: Any) -> tuple[Effect, ...]:
        """For a job; the hooks get the payload and `args`."""
        effects: tuple[Effect, ...] = ()
        for hook in self._hooks:
            try:
                effects += hook(payload, *args)
            except Exception:
                self._failed(payload)
        return effects

    def of_run(self, run: Run, *, plain: bool = False) -> tuple[Effect, ...]:
        """For a run that ended. `plain`: of those features alone that concern all jobs."""
        effects: tuple[Effect, ...] = ()
        for hook in self._plain if plain else self._hooks:
            try:
                effects += hook(run)
            except Exception:
                self._failed(run.payload)
        return effects

    def _failed(self, payload: dict[str, Any]) -> None:
        jid = payload.get("jid")
        logger.exception(
            "A feature failed when job %s was %s.", jid, self._method, extra={"jid": jid}
        )


class Notes:
    """The notes of runs that succeeded, one feature after the other, and what is made of them."""

    def __init__(self) -> None:
        # Those that concern all jobs come first: the notes of a plain job are the beginning of those of others.
        self._notes: list[Callable[[Run], Any]] = sorted(
            registry.taking_part("note"), key=registry.concerns_all, reverse=True
        )
        self._plain = list(filter(registry.concerns_all, self._notes))
        self._digests: list[Callable[[Sequence[Any]], tuple[Effect, ...]]] = [
            registry.method_beside(each, "digest") for each in self._notes
        ]

    def __bool__(self) -> bool:
        return bool(self._notes)

    def of(self, run: Run, *, plain: bool = False) -> tuple[Any, ...]:
        """One note a feature. `plain`: of those features alone that concern all jobs."""
        return tuple([self._note(each, run) for each in (self._plain if plain else self._notes)])

    @staticmethod
    def _note(hook: Callable[[Run], Any], run: Run) -> Any:
        try:
            return hook(run)
        except Exception:
            jid = run.payload.get("jid")
            logger.exception("A feature failed to note job %s.", jid, extra={"jid": jid})
            return None

    def digest(self, notes: Sequence[tuple[Any, ...]]) -> tuple[Effect, ...]:
        effects: tuple[Effect, ...] = ()
        for place, hook in enumerate(self._digests):
            own = [each[place] for each in notes if len(each) > place and each[place] is not None]
            if not own:
                continue
            try:
                effects += hook(own)
            except Exception:
                logger.exception("A feature failed to digest %d notes.", len(own))
        return effects


class Audience:
    """The features that want to know of the end of a run."""

    def __init__(self) -> None:
        self._hooks: list[Callable[[Run], None]] = registry.taking_part("over")
        self._plain = list(filter(registry.concerns_all, self._hooks))

    def hears(self, *, plain: bool) -> bool:
        return bool(self._plain if plain else self._hooks)

    def tell(self, run: Run, *, plain: bool = False) -> None:
        """Never raises."""
        for hook in self._plain if plain else self._hooks:
            try:
                hook(run)
            except BaseException:  # an exit too: the run is over, and is not to be undone
                jid = run.payload.get("jid")
                logger.exception(
                    "A feature failed to hear the end of job %s.", jid, extra={"jid": jid}
                )


def failure_fields(payload: dict[str, Any], error: BaseException) -> dict[str, Any]:
    """What features write into the record of a job that failed by this error. Never raises."""
    fields: dict[str, Any] = {}
    for hook in registry.taking_part("failed"):
        try:
            fields.update(hook(payload, error))
        except Exception:
            jid = payload.get("jid")
            logger.exception("A feature failed to mark job %s.", jid, extra={"jid": jid})
    return fields


def obstacles(payload: dict[str, Any], state: str) -> tuple[Reason, ...]:
    """Why features do not let the job run now. Raises redis-py's errors."""
    found: tuple[Reason, ...] = ()
    for hook in registry.taking_part("holding_up"):
        found += hook(payload, state)
    return found


def locate(jid: str) -> Place | None:
    """Where the job is, where a feature knows it without a search. Raises redis-py's errors."""
    for hook in registry.taking_part("located"):
        place: Place | None = hook(jid)
        if place is not None:
            return place
    return None
