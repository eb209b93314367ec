"""The frozen clock: time that passes only when the test says so, with all that is due on the way.

    with jobs.frozen("2026-03-29 01:59", tz="Europe/Paris") as clock:
        Remind.perform_in(3600, 42)
        ran = clock.tick(hours=2)

`tick` and `move_to` go from one due moment to the next, as one worker that is always there would: jobs on
their queues, scheduled ones, retries after their real delays, slots of periodic entries. Errors of jobs are
failed attempts. With `down=True` no worker is there meanwhile: the clock jumps, then what is overdue runs.

It is the time of jobs alone (`django_cogworker.clock`). Code of the project that reads the clock itself is
told by `follow`, which takes the new moment each time: the `move_to` of time-machine or freezegun fits.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Unpack

from asgiref.sync import sync_to_async

from django_cogworker import clock
from django_cogworker.client.draining import Chaos
from django_cogworker.exceptions import TestModeError
from django_cogworker.features import registry as features
from django_cogworker.features.base import Clockwork
from django_cogworker.testing.fake import FakeTransport
from django_cogworker.testing.held import Ran
from django_cogworker.testing.how import How
from django_cogworker.testing.moments import Moment, Zone, epoch_of, in_calendar, zone_of

Follow = Callable[[dt.datetime], object]


class FrozenClock:
    """The clock of one `with frozen(…)`."""

    def __init__(
        self,
        transport: FakeTransport,
        moment: float,
        zone: dt.tzinfo,
        how: How,
        follow: Follow | None,
    ) -> None:
        self._transport = transport
        self._now = moment
        self._zone = zone
        self._how = how
        self._follow = follow
        self._clockworks: list[Clockwork] = []

    @property
    def now(self) -> dt.datetime:
        """The moment at which the clock stands, in its zone."""
        return dt.datetime.fromtimestamp(self._now, self._zone)

    def timestamp(self) -> float:
        """The same in epoch seconds."""
        return self._now

    def tick(
        self,
        delta: dt.timedelta | float | None = None,
        *,
        down: bool = False,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> list[Ran]:
        """Let so much time pass; what ran meanwhile, in order. A number is in seconds. Hours are real ones, also
        where clocks change. `down`: no worker is there until the end.
        """
        try:
            more = delta if isinstance(delta, dt.timedelta) else dt.timedelta(seconds=delta or 0)
            more += dt.timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        except (OverflowError, ValueError) as error:
            raise TestModeError(f"No clock can go on for so long: {error}.") from None
        return self._move(in_calendar(self._now + more.total_seconds(), self._zone), down)

    def move_to(self, moment: Moment, *, down: bool = False) -> list[Ran]:
        """Let time pass until then; what ran meanwhile, in order. Without a zone it is a local time of the
        clock's zone.
        """
        return self._move(epoch_of(moment, self._zone), down)

    def run_due(self) -> list[Ran]:
        """Run what is due now, without letting time pass."""
        return self._transport.run_due(self._how, self._zone)

    async def atick(
        self,
        delta: dt.timedelta | float | None = None,
        *,
        down: bool = False,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> list[Ran]:
        """`tick` for coroutines; the jobs run in the thread for synchronous code."""
        parts = {"days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
        return await sync_to_async(self.tick)(delta, down=down, **parts)

    async def amove_to(self, moment: Moment, *, down: bool = False) -> list[Ran]:
        """`move_to` for coroutines."""
        return await sync_to_async(self.move_to)(moment, down=down)

    async def arun_due(self) -> list[Ran]:
        """`run_due` for coroutines."""
        return await sync_to_async(self.run_due)()

    def start(self, names: Sequence[str] | None) -> None:
        """Periodic entries begin here: all, or those of these names."""
        for each in features.taking_part("clockwork"):
            clockwork = each(self._now, names)
            if clockwork is not None:
                self._clockworks.append(clockwork)

    def _move(self, target: float, down: bool) -> list[Ran]:
        if target < self._now:
            there = dt.datetime.fromtimestamp(target, self._zone)
            raise TestModeError(f"The clock stands at {self.now} and cannot go back to {there}.")
        ran: list[Ran] = []
        if not down:
            ran += self.run_due()
            while (following := self._next_time()) is not None and following <= target:
                ran += self._stop_at(following, watched=True)
        return ran + self._stop_at(target, watched=not down)

    def _stop_at(self, moment: float, *, watched: bool) -> list[Ran]:
        self._now = moment
        self.tell()
        for each in self._clockworks:
            each.push_due(moment, watched=watched)
        return self.run_due()

    def _next_time(self) -> float | None:
        moments = [each.next_after(self._now) for each in self._clockworks]
        moments.append(self._transport.next_time())
        # What is due now and was not run is on a queue that is paused, or waits for something else than time.
        return min(
            (each for each in moments if each is not None and each > self._now), default=None
        )

    def tell(self) -> None:
        """Tell the project's own code where the clock stands."""
        if self._follow is not None:
            self._follow(self.now)


@contextmanager
def freeze(
    transport: FakeTransport,
    moment: Moment | None,
    *,
    tz: Zone = None,
    periodic: bool | Sequence[str] = True,
    follow: Follow | None = None,
    **chaos: Unpack[Chaos],
) -> Iterator[FrozenClock]:
    """Freeze the time of jobs at that moment, or where it is now, with the jobs of this transport."""
    zone = zone_of(tz)
    start = clock.now() if moment is None else epoch_of(moment, zone)
    how = How(errors="record", **chaos)
    frozen_clock = FrozenClock(transport, start, zone, how, follow)
    with clock.following(frozen_clock.timestamp):
        if isinstance(periodic, str):
            raise TestModeError(
                f"periodic={periodic!r}; allowed are True, False and a list of names."
            )
        frozen_clock.tell()
        if periodic is not False:
            frozen_clock.start(None if periodic is True else list(periodic))
        yield frozen_clock
