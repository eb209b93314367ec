"""The scheduler: moves jobs that are due from the scheduled and the retrying set to their queues.

It does not poll. The fetcher's calls bring the time of the next due job along, and a job scheduled
for soon wakes an idle worker; so it sleeps until that moment. Only when the fetcher is silent (all
processors busy with long jobs) it looks by itself.

Every worker moves; a move is one script that asks first whether the job is still there, so two
movers never double one. It moves all that are due, in batches.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

import redis

from django_cogworker.exceptions import UnparseablePayload
from django_cogworker.features import registry as features
from django_cogworker.features.asking import Effects
from django_cogworker.payload.codec import decode, encode, queue_of, stamp
from django_cogworker.payload.job import priority_of
from django_cogworker.payload.unparseable import wrap
from django_cogworker.store.errors import is_unavailable
from django_cogworker.store.store import Store
from django_cogworker.store.values import Move
from django_cogworker.worker.outage import Outage, Pause

logger = logging.getLogger("django_cogworker")

#: Jobs of each set that one batch moves.
BATCH = 500
#: When the fetcher has been silent for so long, the scheduler looks by itself (seconds).
SILENCE = 2.5
TICK = 1.0


class Scheduler:
    """Moves due jobs; calls the features' ticks."""

    def __init__(self, *, store: Store, outage: Outage, turned: Callable[[], None]) -> None:
        self._store = store
        self._outage = outage
        self._turned = turned
        self._graduated = Effects("graduated")
        self._tick_hooks = features.taking_part("tick")
        self._wake = threading.Event()
        self._ended = False
        self._due = 0.0  # the moment (monotonic) of the next look
        self._next_tick = 0.0
        self.quiet = False

    def due_in(self, milliseconds: int) -> None:
        """The fetcher knows when the next job is due (-1: there is none)."""
        now = time.monotonic()
        wait = SILENCE if milliseconds < 0 else min(SILENCE, milliseconds / 1000)
        earlier = now + wait < self._due
        self._due = now + wait
        if earlier:
            self._wake.set()

    def resume(self) -> None:
        self.quiet = False
        self._due = 0.0
        self._wake.set()

    def end(self) -> None:
        self._ended = True
        self._wake.set()

    def loop(self) -> None:
        """The thread's body."""
        pause = Pause()
        while not self._ended:
            self._turned()
            wait = TICK
            if not self.quiet:
                self._tick()
                wait = min(TICK, self._due - time.monotonic())
                if wait <= 0:
                    try:
                        self.due_in(self.move_due())
                        pause.reset()
                        continue
                    except (redis.RedisError, OSError) as error:
                        self._outage.failed("Moving due jobs", error)
                        wait = pause.seconds()
            self._wake.wait(wait)
            self._wake.clear()

    def _tick(self) -> None:
        if not self._tick_hooks or time.monotonic() < self._next_tick:
            return
        self._next_tick = time.monotonic() + TICK
        for hook in self._tick_hooks:
            try:
                hook()
            except Exception:
                logger.exception("A feature failed at the tick.")

    def move_due(self) -> int:
        """Move one batch of each set; milliseconds until there may be more (0: at once, -1:
        unknown).
        """
        found = self._store.due(BATCH)
        for each in found.errors:
            self._outage.failed("Looking for due jobs", redis.ResponseError(each))
        keys = self._store.keys
        moved = 0
        for source, members in ((keys.schedule, found.scheduled), (keys.retry, found.retrying)):
            if members:
                moved += self._move(source, members)
        self._outage.over(wrote=moved > 0)
        if found.wait_ms == 0 and not moved:
            return 1000  # a full batch of which nothing could be moved: others are at it, or it is postponed
        return found.wait_ms

    def _move(self, source: str, members: Sequence[bytes]) -> int:
        now = time.time()
        moves = [self._plan(each, now) for each in members]
        verdicts = self._store.graduate(source, moves)
        for move, verdict in zip(moves, verdicts, strict=True):
            if isinstance(verdict, str):
                problem = redis.ResponseError(verdict)
                if is_unavailable(problem):
                    self._outage.failed("Moving due jobs", problem)
                    continue
                logger.error(
                    "A due job cannot be moved to queue %s (%s); it is postponed.",
                    move.queue,
                    verdict,
                )
            elif verdict == 1 and not move.queue:
                logger.error(
                    "What was due in %s is no job (%s); it is in the dead set now.",
                    source,
                    decode(move.payload)["error_message"],
                )
        return sum(each == 1 for each in verdicts)

    def _plan(self, member: bytes, now: float) -> Move:
        try:
            payload = decode(member)
            queue = queue_of(payload)
            if not queue:
                raise UnparseablePayload("The field 'queue' is missing or names no queue.")
        except UnparseablePayload as error:
            return Move(member, encode(wrap(member, None, error)), "")
        payload.pop("enqueued_at", None)
        effects = self._graduated.of(payload) if self._graduated else ()
        return Move(member, stamp(encode(payload), now), queue, priority_of(payload), effects)
