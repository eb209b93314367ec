"""What stands in many transactions, and what became of one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import redis


def leave_token(pipe: Any, key: str) -> None:
    """Wake one idle worker; `pipe` may be a client as well."""
    pipe.lpush(key, "1")
    pipe.ltrim(key, 0, 0)


def first_error(pipe: Any) -> str | None:
    """Run the transaction; the text of the first reply that is an error of one key."""
    answers: Iterable[object] = pipe.execute(raise_on_error=False)
    for answer in answers:
        if isinstance(answer, redis.ResponseError):
            return str(answer)
        if isinstance(answer, Exception):
            raise answer
    return None
