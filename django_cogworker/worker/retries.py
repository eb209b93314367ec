"""What becomes of a job that failed.

1. Its class names the error in `discard_on`: it is dropped.
2. A row that it was given is gone: as its option `missing_row` says, dead by default.
3. No retries are left: it goes to the dead set.
4. The class's `retry_in` is asked: a delay, the default, `KILL` (dead now) or `DISCARD`.
5. Else it is tried again after a delay that grows with the fourth power of the failures.

A hook that raises or answers nonsense is logged and means the default.
"""

from __future__ import annotations

import copy
import dataclasses
import logging
import math
import random
from typing import Any, Literal

from django_cogworker.exceptions import MissingRow
from django_cogworker.jobs.answers import DISCARD, KILL
from django_cogworker.jobs.definition import Definition
from django_cogworker.jobs.options import retries_allowed
from django_cogworker.payload.failure import failures
from django_cogworker.worker.calling import call_accepting

logger = logging.getLogger("django_cogworker")

Outcome = Literal["retrying", "dead", "killed", "discarded"]

LONG_DELAY = 365 * 86_400


@dataclasses.dataclass(frozen=True, slots=True)
class Decision:
    """Where a failed job goes; `delay` in seconds until the next attempt."""

    outcome: Outcome
    delay: float = 0.0


def default_delay(count: int) -> float:
    """Seconds before the next attempt after the failure number `count` (1 for the first)."""
    return count**4 + 15 + random.randrange(30) * (count + 1)


def decide(
    definition: Definition | None, payload: dict[str, Any], error: BaseException
) -> Decision:
    """What becomes of the job. Never raises."""
    before = failures(payload)
    if definition is not None and isinstance(error, definition.discard_on):
        return Decision("discarded")
    if isinstance(error, MissingRow) and error.jid == payload.get("jid"):
        wish = payload.get("missing_row")
        if wish != "retry":
            return Decision("discarded" if wish == "discard" else "dead")
    if before >= retries_allowed(payload.get("retry")):
        return Decision("dead")
    answer = None if definition is None else _ask(definition, before, error, payload)
    if answer is KILL:
        return Decision("killed")
    if answer is DISCARD:
        return Decision("discarded")
    return Decision("retrying", default_delay(before + 1) if answer is None else answer)


def _ask(definition: Definition, count: int, error: BaseException, payload: dict[str, Any]) -> Any:
    hook = definition.retry_in
    if hook is None:
        return None
    extra = {"jid": payload.get("jid"), "job_class": definition.name}
    try:
        answer = call_accepting(hook, count, error, copy.deepcopy(payload))
    except BaseException:  # even an exit: the hook decides about a delay, not about the worker
        logger.exception(
            "retry_in of %s failed; the default delay counts.", definition.name, extra=extra
        )
        return None
    if answer is None or answer is KILL or answer is DISCARD:
        return answer
    if (
        isinstance(answer, bool)
        or not isinstance(answer, (int, float))
        or not 0 <= answer < math.inf
    ):
        logger.warning(
            "retry_in of %s answered %r; allowed are seconds from 0, None, KILL and DISCARD. The default delay counts.",
            definition.name,
            answer,
            extra=extra,
        )
        return None
    if answer > LONG_DELAY:
        logger.warning(
            "retry_in of %s asks for a delay of more than a year.", definition.name, extra=extra
        )
    return float(answer)
