"""The history as a guest of the worker: which ends of a job leave a record.

Every attempt that ended does: successes as notes, which cost one set of effects for all that are
acknowledged together; failures, and burials after the death of a worker, with their own step. A job that only
moved (put back, postponed, turned away) has had no attempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django_cogworker.conf import PerConfig, get_config
from django_cogworker.features.base import FAILURES, Feature, Run
from django_cogworker.features.history.writing import (
    FAILED,
    SUCCESS,
    Note,
    Status,
    effects_of,
    noted,
    noted_burial,
    noted_failure,
)
from django_cogworker.store.keys import Keys
from django_cogworker.store.values import Effect

_keys: PerConfig[Keys] = PerConfig(lambda config: Keys(config.key_prefix))


class HistoryFeature(Feature):
    """Writes the history of runs, unless `COGWORKER_HISTORY` is off."""

    name = "history"

    def note(self, run: Run) -> Note | None:
        return None if get_config().history is None else noted(run)

    def digest(self, notes: Sequence[Any]) -> tuple[Effect, ...]:
        return self._effects(SUCCESS, notes)

    def settled(self, run: Run) -> tuple[Effect, ...]:
        if run.outcome not in FAILURES or get_config().history is None:
            return ()
        return self._effects(FAILED, [noted_failure(run)])

    def recovered(self, payload: dict[str, Any], fate: str) -> tuple[Effect, ...]:
        if fate != "dead" or get_config().history is None:
            return ()
        return self._effects(FAILED, [noted_burial(payload)])

    @staticmethod
    def _effects(status: Status, notes: Sequence[Note]) -> tuple[Effect, ...]:
        kept = get_config().history
        return () if kept is None else effects_of(_keys(), kept, status, notes)
