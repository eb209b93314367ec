"""Pools of connections, made by our own rules.

redis-py's defaults would repeat a command silently after a time-out, which doubles a push, and its
way to speak the third protocol version changes replies; so each pool is ours: second protocol
version, no retry of its own, a time-out on every call, nothing opened before the first use. A pool
notices by itself that it was carried over a fork and starts afresh in the child.
"""

from __future__ import annotations

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from django_cogworker.store.lenient import LenientClient
from django_cogworker.store.target import Target

#: Seconds that one ordinary call may take before the server counts as away.
CALL_TIMEOUT = 5.0
CONNECT_TIMEOUT = 3.0
#: Seconds that a thread waits for a free connection of the pool.
POOL_WAIT = 10.0


def make_client(
    target: Target, *, size: int, name: str, call_timeout: float = CALL_TIMEOUT
) -> redis.Redis:
    """A client with a pool of its own of at most `size` connections; no connection is opened yet."""
    pool = redis.BlockingConnectionPool(  # type: ignore[no-untyped-call]
        connection_class=target.connection_class,
        max_connections=size,
        timeout=POOL_WAIT,
        **{
            **target.options,
            "socket_timeout": call_timeout,
            "socket_connect_timeout": CONNECT_TIMEOUT,
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
            "retry_on_error": [],
            "decode_responses": False,
            "client_name": name,
            "driver_info": None,
        },
    )
    return LenientClient.from_pool(pool)
