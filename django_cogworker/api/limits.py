"""Jobs that did not yield to their time-out."""

from __future__ import annotations

import json
from typing import Any

from django_cogworker.features.interrupting.stuck import stuck_key
from django_cogworker.store.store import get_store


def stuck_jobs(limit: int = 100) -> list[dict[str, Any]]:
    """The last ones, the newest first. Each has `jid`, `class`, `queue`, `worker`, `timeout` (seconds),
    `at` (epoch seconds) and `stack`. O(limit); at most 100 are kept, for 7 days.
    """
    store = get_store()
    found: Any = store.client.zrange(stuck_key(store.keys), 0, max(0, limit - 1), desc=True)
    return [json.loads(each) for each in found]
