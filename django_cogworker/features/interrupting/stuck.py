"""Jobs that do not yield to their interruption: told, written down, and no longer waited for.

Nothing can end a thread from outside. So the worker is asked to let its other jobs end and then to
end itself, with the stuck job as one failed attempt, or as cancelled where that was wanted; whoever
keeps workers running starts another.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import redis

from django_cogworker.store.keys import Keys
from django_cogworker.store.store import get_store
from django_cogworker.store.values import Effect

if TYPE_CHECKING:
    from django_cogworker.features.base import Worker
    from django_cogworker.jobs.context import JobContext
    from django_cogworker.jobs.interruption import Interruption

logger = logging.getLogger("django_cogworker.jobs")

#: How many are kept, and for how long after the last one (seconds).
MOST = 100
TTL = 7 * 86_400
MAX_STACK = 20_000


def stuck_key(keys: Keys) -> str:
    """sorted set with a TTL: score = time, member = a job that was stuck (JSON)."""
    return keys.of("stuck", "jobs")


class StuckJobs:
    """Those of this process."""

    def __init__(self) -> None:
        #: The worker that this process is; none where jobs run in a test mode.
        self.worker: Worker | None = None

    def found(self, context: JobContext, kind: Interruption, message: str) -> None:
        """The run did not yield. Called by the clock; what may take time has a thread of its own."""
        stack, payload = context.stack(), context.payload
        jid, name = payload["jid"], payload["class"]
        logger.error(
            "%s %s is stuck: it did not yield to %s. It is here:\n%s",
            name,
            jid,
            kind.__name__,
            stack,
            extra={"jid": jid, "job_class": name},
        )
        worker = self.worker
        if worker is None:
            return
        error = kind(
            f"{message} It did not yield; its worker ended without it. It was here:\n{stack[-2000:]}"
        )
        worker.give_up(payload, error)
        worker.recycle(f"{name} {jid} is stuck")
        record = {
            "jid": jid,
            "class": name,
            "queue": payload.get("queue"),
            "worker": worker.identity,
            "timeout": payload.get("timeout"),
            "reason": message,
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


stuck_jobs = StuckJobs()
