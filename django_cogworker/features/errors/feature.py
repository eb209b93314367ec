"""Error groups as a guest of the worker.

A job that succeeds costs nothing but a look at its outcome. A failure costs one effect in the step that settles
it. Groups are the rows of one hash: 500 of them, and who is silent for the longest time leaves first.
"""

from __future__ import annotations

import json
import time
from typing import Any

from django_cogworker.conf import PerConfig
from django_cogworker.features.base import FAILURES, Feature, Run
from django_cogworker.features.errors.group import (
    Failure,
    failure_of,
    failure_of_record,
    failure_of_run,
)
from django_cogworker.store.keys import Keys
from django_cogworker.store.values import Effect

#: So many groups are kept, and each so long after its last failure (seconds).
MOST = 500
TTL = 30 * 86_400


def groups_key(keys: Keys) -> str:
    """hash: id of the group -> its row, whose text is JSON."""
    return keys.of("errors", "groups")


_key: PerConfig[str] = PerConfig(lambda config: groups_key(Keys(config.key_prefix)))


class Errors(Feature):
    name = "errors"

    def failed(self, payload: dict[str, Any], error: BaseException) -> dict[str, Any]:
        failure = failure_of(payload, error)
        return {"error_group": failure.group, "error_place": failure.place.where}

    def settled(self, run: Run) -> tuple[Effect, ...]:
        if run.outcome not in FAILURES:
            return ()
        return _counted(failure_of_run(run), run.payload)

    def recovered(self, payload: dict[str, Any], fate: str) -> tuple[Effect, ...]:
        """A burial with its worker is a failure too: of the class, without a place."""
        return () if fate != "dead" else _counted(failure_of_record(payload), payload)


def _counted(failure: Failure, payload: dict[str, Any]) -> tuple[Effect, ...]:
    now = time.time()
    text = json.dumps(
        {
            "class": failure.job_class,
            "error": failure.error_class,
            "where": failure.place.where,
            "line": failure.place.line,
            "message": failure.message,
            "jid": payload["jid"],
        },
        separators=(",", ":"),
    )
    row = (failure.group, f"{now:.3f}", MOST, f"{now - TTL:.0f}", text)
    return Effect("tally", _key(), row), Effect("expire", _key(), (TTL,))
