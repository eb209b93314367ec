"""What a `retry_in` hook may answer beside a number of seconds and `None`."""

from __future__ import annotations

import enum


class RetryAnswer(enum.Enum):
    """`KILL`: dead now, with the death hooks. `DISCARD`: dropped, counted as failed, no hooks."""

    KILL = "kill"
    DISCARD = "discard"


KILL = RetryAnswer.KILL
DISCARD = RetryAnswer.DISCARD
