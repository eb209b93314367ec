"""Reading where a key may be of the wrong type: what belongs there then counts as not there.

Other programs write into the same Redis. A page is to show all the rest, and to name the key. So inside `lenient()` a
command that only reads is answered as if the key did not exist, and the key is written down; whatever writes, and
whatever is asked outside, raises as ever: code that decides by what it reads must know.

Each connection to Redis is made by `connection.make_client`, so this holds for all reads alike.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import redis
from redis.client import Pipeline

logger = logging.getLogger("django_cogworker")

_in_lenient: ContextVar[dict[str, None] | None] = ContextVar("cogworker_lenient", default=None)
#: Keys that were told in the log already; a page asks again and again.
_told: set[str] = set()
MOST_TOLD = 1_000

#: What each reading command says of a key that does not exist, by its arguments after the key.
_EMPTY: Mapping[str, Callable[..., Any]] = {
    **dict.fromkeys(("GET", "HGET", "LINDEX", "ZSCORE", "ZRANK"), lambda *args: None),
    **dict.fromkeys(
        ("LLEN", "SCARD", "HLEN", "ZCARD", "ZCOUNT", "STRLEN", "SISMEMBER"), lambda *args: 0
    ),
    "HEXISTS": lambda *args: False,
    **dict.fromkeys(
        ("LRANGE", "HKEYS", "HVALS", "ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE"),
        lambda *args: [],
    ),
    "SMEMBERS": lambda *args: set(),
    "SRANDMEMBER": lambda *args: [] if args else None,
    "HGETALL": lambda *args: {},
    "HMGET": lambda *args: [None] * len(args),
    "SMISMEMBER": lambda *args: [0] * len(args),
    "HSCAN": lambda *args: (0, {}),
    "SSCAN": lambda *args: (0, []),
    "ZSCAN": lambda *args: (0, []),
}


@contextlib.contextmanager
def lenient() -> Iterator[dict[str, None]]:
    """Inside, keys of the wrong type read as empty. Gives their names, in the order in which they were met."""
    found: dict[str, None] = {}
    before = _in_lenient.set(found)
    try:
        yield found
    finally:
        _in_lenient.reset(before)


def _instead(command: Any, error: Any, found: dict[str, None]) -> Any:
    """The answer in place of that error; the error where there is none."""
    if not isinstance(error, redis.ResponseError) or not str(error).startswith("WRONGTYPE"):
        return error
    empty = _EMPTY.get(str(command[0]).upper())
    if empty is None:
        return error
    key = command[1]
    name = key if isinstance(key, str) else bytes(key).decode("utf-8", "backslashreplace")
    found[name] = None
    if name not in _told and len(_told) < MOST_TOLD:
        _told.add(name)
        logger.warning("The key %s is of the wrong type and is shown as empty.", name)
    return empty(*command[2:])


class LenientPipeline(Pipeline):
    """Several commands at once."""

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        found = _in_lenient.get()
        if found is None:
            plain: list[Any] = super().execute(raise_on_error)
            return plain
        commands = [args for args, _ in self.command_stack]
        replies = super().execute(raise_on_error=False)
        if len(replies) == len(commands):
            replies = [
                _instead(command, reply, found) if isinstance(reply, Exception) else reply
                for command, reply in zip(commands, replies, strict=True)
            ]
        if raise_on_error:
            for reply in replies:
                if isinstance(reply, Exception):
                    raise reply
        return list(replies)


class LenientClient(redis.Redis):
    """The client of our pools."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        found = _in_lenient.get()
        if found is None:
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        try:
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except redis.ResponseError as error:
            answer = _instead(args, error, found)
            if answer is error:
                raise
            return answer

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> LenientPipeline:
        return LenientPipeline(
            self.connection_pool, self.response_callbacks, transaction, shard_hint
        )
