"""What becomes of a job when our own code failed with it: it is tried again, but not for ever."""

from __future__ import annotations

import json

from django_cogworker.worker.hand import Unit
from django_cogworker.worker.settlement import after_a_fault


def unit(payload: bytes) -> Unit:
    return Unit(7, "host:1:abc", "default", payload, 0)


def test_a_job_that_always_meets_a_fault_of_ours_is_buried_at_the_fourth():
    payload = json.dumps({"class": "a.B", "args": [], "queue": "default", "jid": "j"}).encode()
    delays = []
    for _ in range(3):
        settlement = after_a_fault(unit(payload), RuntimeError("ours"))
        assert settlement.disposition == "retry"
        delays.append(settlement.delay)
        payload = settlement.payload or b""
    assert delays == [30, 60, 90]
    last = after_a_fault(unit(payload), RuntimeError("ours"))
    assert last.disposition == "dead"
    record = json.loads(last.payload or b"")
    assert record["interrupted_count"] == 4
    assert record["error_message"] == "ours"


def test_what_cannot_even_be_read_waits_as_it_is():
    settlement = after_a_fault(unit(b"junk"), RuntimeError("ours"))
    assert (settlement.disposition, settlement.payload) == ("retry", b"junk")
