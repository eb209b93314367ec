"""Admission: features are asked before a job starts whether it may run now.

A cancelled job, one that has expired, one whose turn has not come: the first feature that refuses it
says what becomes of it. A feature that fails keeps nobody from running; while it cannot reach Redis
the job waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import redis

from django_cogworker.features import registry as features
from django_cogworker.features.base import Refused
from django_cogworker.store.values import Settlement
from django_cogworker.worker import settlement
from django_cogworker.worker.hand import Unit

logger = logging.getLogger("django_cogworker.jobs")

#: Seconds that a job waits when Redis cannot be asked about it.
UNASKED = 5.0


class Admission:
    """Asks all features that want to be asked."""

    def __init__(self) -> None:
        self._hooks: Sequence[Callable[[dict[str, Any]], Refused | None]] = features.taking_part(
            "admit"
        )
        self._plain = list(filter(features.concerns_all, self._hooks))
        self._excuses: Sequence[Callable[[dict[str, Any], BaseException], Refused | None]] = (
            features.taking_part("excused")
        )

    def refused(self, payload: dict[str, Any], *, plain: bool = False) -> Refused | None:
        """Why the job is not to run now, or `None`. `plain`: by those features alone that concern all jobs."""
        for hook in self._plain if plain else self._hooks:
            try:
                refused = hook(payload)
            except (redis.RedisError, OSError) as error:
                return Refused("waiting", f"Redis cannot be asked about it ({error})", UNASKED)
            except Exception:
                jid = payload["jid"]
                logger.exception("A feature failed to admit job %s.", jid, extra={"jid": jid})
                continue
            if refused is not None:
                return refused
        return None

    def excused(self, payload: dict[str, Any], error: BaseException) -> Refused | None:
        """Why the run that ended by `error` is no failure, or `None`."""
        for hook in self._excuses:
            try:
                excused = hook(payload, error)
            except Exception:
                jid = payload["jid"]
                logger.exception("A feature failed to judge job %s.", jid, extra={"jid": jid})
                continue
            if excused is not None:
                return excused
        return None


def turned_away(unit: Unit, payload: dict[str, Any], refused: Refused) -> Settlement:
    """Where the refused job goes; said to the log."""
    jid, name = payload["jid"], payload["class"]
    extra = {"jid": jid, "job_class": name}
    if refused.delay is None:
        logger.info("%s %s is dropped: %s.", name, jid, refused.reason, extra=extra)
        return settlement.dropped(unit)
    logger.info("%s %s waits %.1f s: %s.", name, jid, refused.delay, refused.reason, extra=extra)
    return settlement.postponed(unit, refused.delay)
