"""What a busy worker asks of Redis: its own conversation, and nothing for features that its jobs do not use."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from tests.project.jobs import Append

JOBS = 300


class Overheard:
    """The requests that clients send, without what scripts do; until one says the last word."""

    def __init__(self, client: Any) -> None:
        self.requests: Counter[str] = Counter()
        self._client = client
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()
        assert self._ready.wait(10)

    def _listen(self) -> None:
        with self._client.monitor() as monitor:
            self._ready.set()
            for each in monitor.listen():
                if each["client_type"] == "lua":
                    continue
                name = each["command"].split(" ")[0].upper()
                if name == "ECHO":
                    return
                self.requests[name] += 1

    def end(self) -> Counter[str]:
        self._client.echo("the last word")
        self._thread.join(10)
        return self.requests


def test_features_cost_jobs_that_do_not_use_them_no_request(start_worker, journal, board):
    start_worker("-c", "5")
    Append.perform_async("up")
    journal.wait_for("up")
    Append.perform_bulk((f"job {each}",) for each in range(JOBS))
    overheard = Overheard(board.client)
    journal.wait_for_lines(JOBS + 1)
    requests = overheard.end()
    # The exchange, the beat and the movers are scripts, each sent once as text; the listener blocks, and the rest
    # is for the connection.
    assert set(requests) <= {"EVALSHA", "EVAL", "BLPOP", "CLIENT", "HELLO", "PING"}
    assert requests["EVALSHA"] <= JOBS
