"""Losses that no child has written down yet.

The supervisor speaks to nobody but its children. A loss is told to all that live and to each that
gets ready later, until one of them has brought it to Redis: the one that was told first may be the
next that is lost.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from django_cogworker.worker.line import Line
from django_cogworker.worker.supervision import Loss

#: Those that are kept; of more the oldest go.
MOST = 50


class Untold:
    """The ones of a supervisor, as they travel."""

    def __init__(self) -> None:
        self.losses: dict[str, dict[str, Any]] = {}

    def add(self, loss: Loss, living: Iterable[Line]) -> None:
        told = dataclasses.asdict(loss)
        self.losses[loss.name] = told
        while len(self.losses) > MOST:
            del self.losses[next(iter(self.losses))]
        for line in living:
            line.tell(loss=told)

    def tell_all(self, line: Line) -> None:
        for told in self.losses.values():
            line.tell(loss=told)

    def noted(self, name: str) -> None:
        self.losses.pop(name, None)
