"""Queues that nobody reads: jobs that were brought back onto one wait for ever, so it is named."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import redis

from django_cogworker.store.errors import is_unavailable
from django_cogworker.store.recovering import RecoveryVerbs

logger = logging.getLogger("django_cogworker")


def warn_of_unread(verbs: RecoveryVerbs, own: Iterable[str], used: Iterable[str]) -> None:
    """Name those of the `used` queues that neither we (`own`) nor any other living worker reads."""
    unread = set(used) - set(own)
    if not unread:
        return
    try:
        unread -= verbs.queues_read()
    except (redis.RedisError, OSError) as error:
        if is_unavailable(error):
            raise
        logger.debug("It cannot be told which queues are read (%s).", error)
        return
    if unread:
        logger.warning(
            "Jobs were brought back onto queues that no living worker reads: %s.",
            ", ".join(sorted(unread)),
        )
