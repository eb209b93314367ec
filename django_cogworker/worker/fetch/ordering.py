"""In which order the queues are tried, fetch by fetch."""

from __future__ import annotations

import random
from collections.abc import Sequence

from django_cogworker.parsers import QueueWeight


class Ordering:
    """`strict`: always as listed. `weighted`: at random, a queue of weight 3 three times as often
    first as one of weight 1.
    """

    def __init__(self, queues: Sequence[QueueWeight], order: str) -> None:
        self.names = [each.name for each in queues]
        self._weights = [each.weight for each in queues]
        self._fixed = order == "strict" or len(self.names) == 1

    def next(self) -> list[str]:
        if self._fixed:
            return self.names
        # The largest of random ** (1 / weight) falls on a queue in proportion to its weight, and so on for the rest.
        drawn = [(random.random() ** (1 / weight), at) for at, weight in enumerate(self._weights)]
        drawn.sort(reverse=True)
        return [self.names[at] for _, at in drawn]
