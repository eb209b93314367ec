"""Jobs that do not yield to their time-out: told, written down, and no longer waited for.

Nothing can end a thread from outside. So the worker is asked to let its other jobs end and then to
end itself, with the stuck job as one failed attempt; whoever keeps workers running starts another.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import redis

from django_cogworker.exceptions import JobTimeout
from django_cogworker.store.keys import Keys
from django_cogworker.store.store import get_store
from django_cogworker.store.values import Effect

if TYPE_CHECKING:
    from django_cogworker.features.base import Worker
    from django_cogworker.features.timeout.limit import Limit

logger = logging.getLogger("django_cogworker.jobs")

#: How many are kept, and for how long after the last one (seconds).
MOST = 100
TTL = 7 * 86_400
MAX_STACK = 20_000


def stuck_key(keys: Keys) -> str:
    """sorted set with a TTL: score = time, member = a job that was stuck (JSON)."""
    return keys.of("timeout", "stuck")


class StuckJobs:
    """Those of this process."""

    def __init__(self) -> None:
        #: The worker that this process is; none where jobs run in a test mode.
        self.worker: Worker | None = None

    def found(self, limit: Limit) -> None:
        """Called by the clock. What may take time has a thread of its own."""
        stack = limit.stack()
        jid, name = limit.payload["jid"], limit.payload["class"]
        logger.error(
            "%s %s is stuck: it did not yield to the time-out of %g s. It is here:\n%s",
            name,
            jid,
            limit.seconds,
            stack,
            extra={"jid": jid, "job_class": name},
        )
        worker = self.worker
        if worker is None:
            return
        error = JobTimeout(
            f"The job ran longer than its limit of {limit.seconds:g} s and did not yield; "
            f"its worker ended without it. It was here:\n{stack[-2000:]}"
        )
        worker.give_up(limit.payload, error)
        worker.recycle(f"{name} {jid} is stuck")
        record = {
            "jid": jid,
            "class": name,
            "queue": limit.payload.get("queue"),
            "worker": worker.identity,
            "timeout": limit.seconds,
            "stack": stack[-MAX_STACK:],
        }
        threading.Thread(
            target=_write_down, args=(record,), name="cogworker-stuck", daemon=True
        ).start()


def _write_down(record: dict[str, Any]) -> None:
    now = time.time()
    try:
        store = get_store()
        key = stuck_key(store.keys)
        member = json.dumps({**record, "at": round(now, 3)})
        store.apply(
            [
                Effect("record", key, (str(now), member, str(now - TTL), MOST)),
                Effect("expire", key, (TTL,)),
            ]
        )
    except (redis.RedisError, OSError) as error:
        logger.warning("A stuck job could not be written down (%s).", error)
