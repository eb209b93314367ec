"""Numbers out of Redis's replies, where one key may be unusable and the others are not to suffer."""

from __future__ import annotations

import logging
from typing import Any

import redis

logger = logging.getLogger("django_cogworker")


def number(reply: Any) -> int:
    """The reply as a number. What is none (a key of the wrong type, junk) is logged and counts as 0."""
    if isinstance(reply, Exception) and not isinstance(reply, redis.ResponseError):
        raise reply
    try:
        return 0 if reply is None else int(reply)
    except (TypeError, ValueError):
        logger.error("Redis holds something unusable where a number belongs: %s.", reply)
        return 0
