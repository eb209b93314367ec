"""Lanes: how a push is recognised when it comes twice.

A push travels under a lane (a random id) and the lane's next number. Redis keeps, per lane, the
last number with its result. So a client that lost the reply sends the same once more and gets the
answer of the first time. One push is in flight per lane; a lane is leased for it and given back
after a clean end. After an ambiguous end it is thrown away: its late packet may still be on the
way.

A fork copies idle lanes into the child, where they would collide with the parent's. The process id
is compared at each lease, for not every server runs fork hooks.
"""

from __future__ import annotations

import dataclasses
import os
from collections import deque


@dataclasses.dataclass(slots=True)
class Lane:
    id: str
    number: int = 0


class Lanes:
    """The idle lanes of this process. Safe for any number of threads: a deque's ends are atomic."""

    #: More idle lanes than this are of no use: each costs a key in Redis for a while.
    KEEP = 64

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._idle: deque[Lane] = deque(maxlen=self.KEEP)

    def lease(self) -> Lane:
        """A lane with its next number set. It belongs to the caller until given back."""
        if self._pid != os.getpid():
            self._idle, self._pid = deque(maxlen=self.KEEP), os.getpid()
        try:
            lane = self._idle.pop()
        except IndexError:
            lane = Lane(os.urandom(10).hex())
        lane.number += 1
        return lane

    def give_back(self, lane: Lane) -> None:
        self._idle.append(lane)


lanes = Lanes()
