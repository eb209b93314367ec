"""Status in the test modes: in memory, one board a transport, so each `with fake()` begins empty."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from django_cogworker import clock
from django_cogworker.client.transport import Transport, current_transport, real_transport
from django_cogworker.features.status import record, results
from django_cogworker.payload.failure import error_name, error_text

#: So many jobs are remembered; the oldest are forgotten first.
REMEMBERED = 10_000
#: Who runs jobs here, where otherwise a worker's identity stands.
HERE = "test"
#: The states that the push writes, which is before it is known whether it is refused.
WAITING = ("queued", "scheduled")

_boards: WeakKeyDictionary[Transport, Board] = WeakKeyDictionary()
_making = threading.Lock()


class Board:
    """The fields of each tracked job, as they would be in Redis."""

    def __init__(self) -> None:
        self._jobs: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    def pushed(self, payload: Mapping[str, Any], state: str) -> None:
        with self._lock:
            self._jobs.pop(payload["jid"], None)
            while len(self._jobs) >= REMEMBERED:
                del self._jobs[next(iter(self._jobs))]
        self.write(
            payload,
            {"state": state, "class": payload["class"], "queue": str(payload.get("queue", ""))},
        )

    def write(self, payload: Mapping[str, Any], fields: Mapping[str, str]) -> None:
        if "result_ttl" in payload:
            fields = {**fields, "keeps": "1"}
        with self._lock:
            own = self._jobs.setdefault(payload["jid"], {})
            own.update(fields, updated=f"{clock.now():.6f}")

    def run(self, payload: Mapping[str, Any], perform: Callable[[], Any]) -> Any:
        """Run the job, whose error reaches the caller: there are no retries here."""
        start = record.start_of(payload, HERE, clock.now())
        self.write(payload, {"state": "working", **start})
        try:
            result = perform()
        except BaseException as error:
            said = {"error_class": error_name(error), "error_message": error_text(error)}
            self.write(payload, {"state": "failed", **said})
            raise
        self.write(payload, {"state": "complete", "pct": "100", **results.kept(payload, result)})
        return result

    def jids(self) -> list[str]:
        """Of all jobs that it remembers, oldest first."""
        with self._lock:
            return list(self._jobs)

    def forget(self, jid: str) -> None:
        with self._lock:
            self._jobs.pop(jid, None)

    def of(self, jid: str) -> dict[str, str]:
        """The fields; none of a job that is said to wait and does not: its push was refused, or it was forgotten."""
        with self._lock:
            fields = dict(self._jobs.get(jid, {}))
        if fields.get("state") in WAITING and not _waits(jid):
            return {}
        return fields


def _waits(jid: str) -> bool:
    collected: list[dict[str, Any]] = getattr(current_transport(), "jobs", list)()
    return any(each["jid"] == jid for each in collected)


def board() -> Board | None:
    """That of the test mode which is in force; `None` where jobs go to Redis."""
    transport = current_transport()
    if transport is real_transport():
        return None
    with _making:
        found = _boards.get(transport)
        if found is None:
            found = _boards[transport] = Board()
        return found
