"""Django signals about the life of a job.

`sender` is the job class (a `Job` subclass or a `@job` function), or `None` where the name in the
payload is not known to this process. `payload` is the job as a dict. They are sent where the thing
happens: `job_enqueued` in the process that pushed, the others in the worker's thread that ran the
job. A receiver that raises is logged and otherwise ignored: it can neither fail a job nor hinder a
push.

* `job_enqueued(sender, jid, payload)`: Redis has the job (or the test mode has it).
* `job_push_failed(sender, jid, payload, error)`: a push that waited for a commit failed for good.
* `job_refused(sender, jid, payload)`: a push that waited for a commit was refused as a duplicate.
* `job_started(sender, jid, payload)`: `perform` is about to be called.
* `job_finished(sender, jid, payload, duration)`: it succeeded; `duration` in seconds.
* `job_failed(sender, jid, payload, error, outcome)`: an attempt failed. `outcome` is `retrying`,
`dead`, `killed` (dead by the class's `retry_in`) or `discarded`.
* `job_died(sender, jid, payload, error)`: the job is now in the dead set.
"""

from __future__ import annotations

import logging
from typing import Any

from django.dispatch import Signal

logger = logging.getLogger("django_cogworker")

job_enqueued = Signal()
job_push_failed = Signal()
job_refused = Signal()
job_started = Signal()
job_finished = Signal()
job_failed = Signal()
job_died = Signal()

_NAMES = {
    job_enqueued: "job_enqueued",
    job_push_failed: "job_push_failed",
    job_refused: "job_refused",
    job_started: "job_started",
    job_finished: "job_finished",
    job_failed: "job_failed",
    job_died: "job_died",
}


def announce(signal: Signal, sender: Any, **named: Any) -> None:
    """Send `signal`; log what its receivers raise. Costs almost nothing where nobody listens."""
    if not signal.receivers:
        return
    try:
        answers = signal.send_robust(sender=sender, **named)
    except BaseException:  # send_robust lets SystemExit and its like through: not at a job's cost
        logger.exception("A receiver of %s ended abruptly.", _NAMES[signal])
        return
    for receiver, answer in answers:
        if isinstance(answer, BaseException):
            logger.error(
                "Receiver %r of %s failed: %r.",
                receiver,
                _NAMES[signal],
                answer,
                exc_info=answer,
                extra={"jid": named.get("jid")},
            )
