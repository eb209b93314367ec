"""The reasons for which the guarantees allow a job to run again, read from what the trial did.

Not taken from the product's own words: the watcher saw processes die, the trial knows whom it froze
or cut off. Of Redis's content only the tombstones count, which say when a worker was buried.
"""

from __future__ import annotations

from tests.chaos.records import Burial, Disturbance, Life, Records, Run
from tests.chaos.schedule import ORPHAN_THRESHOLD, SHUTDOWN_TIMEOUT, WRONG_TYPE

#: Clocks are one; but the watcher looks only every so often, and the machine may be busy.
BLUR = 0.1
#: A worker that can talk to Redis settles a job within this time, also on a busy machine.
SETTLING = 1.5
#: Of a silence so much may be the busy machine's part: a beat comes each second, and may be late.
HELP = 2.0
BEAT = 1.0


class Excuses:
    """Answers about runs and burials."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._burials: dict[int, list[Burial]] = {}
        for each in records.burials:
            self._burials.setdefault(each.pid, []).append(each)
        self._disturbances = sorted(records.disturbances, key=lambda each: each.begin)

    # -- runs

    def of_double(self, earlier: Run, later: Run) -> str | None:
        """Why the job of `earlier` could run again as `later`; `None` where it must not have."""
        life = self._records.life_of(earlier)
        if life is None:
            return None
        if life.stopped is not None:
            given_up = life.stopped + SHUTDOWN_TIMEOUT - BLUR
            if given_up <= later.start and (earlier.end is None or earlier.end > given_up):
                return "interrupted by a stop"
        if life.dead is not None and life.last_alive <= later.start + BLUR:
            if earlier.end is None or earlier.end > life.last_alive:
                return "its worker died while it ran"
            if self._unsettled(earlier.end, life.last_alive, life):
                return "its worker died before Redis knew of the end"
        for burial in self._burials.get(life.pid, ()):
            if burial.before > later.start + BLUR or burial.after < earlier.start:
                continue
            if earlier.end is None or earlier.end > burial.before:
                return "its worker was taken for dead while it ran"
            if self._unsettled(earlier.end, burial.before, life):
                return "its worker was taken for dead before Redis knew of the end"
        return None

    def lost_its_worker(self, run: Run) -> bool:
        """Whether its worker died, was taken for dead or was stopped over this run."""
        life = self._records.life_of(run)
        if life is None:
            return False
        moments = [
            each.before for each in self._burials.get(life.pid, ()) if each.after >= run.start
        ]
        if life.dead is not None:
            moments.append(life.last_alive)
        if life.stopped is not None:
            moments.append(life.stopped + SHUTDOWN_TIMEOUT - BLUR)
        return any(
            run.end is None or run.end > each or self._unsettled(run.end, each, life)
            for each in moments
        )

    def _unsettled(self, end: float, death: float, life: Life) -> bool:
        """Whether the worker may not have had the time to tell Redis of the end before its death:
        less than `SETTLING` seconds in which nothing disturbed it.
        """
        quiet, at = 0.0, end
        for each in self._disturbances:
            if not _strikes(each, life) or each.end + each.rest <= at:
                continue
            if each.begin >= death:
                break
            quiet += max(0.0, each.begin - at)
            at = max(at, each.end + each.rest)
        return quiet + max(0.0, death - at) <= SETTLING

    # -- burials

    def was_dead(self, burial: Burial) -> bool:
        """Whether the buried worker's process was gone, or on its way out after a stop."""
        lives = [each for each in self._records.lives if each.pid == burial.pid]
        return any(
            each.dead is not None and each.last_alive <= burial.after + BLUR
            for each in lives
            if each.born <= burial.after
        )

    def was_silent(self, burial: Burial) -> bool:
        """Whether the trial had silenced this very worker for about the threshold before its burial.

        An outage of Redis, in which nobody can beat, is no reason; it may only have lent a hand.
        """
        since = burial.after - 2 * ORPHAN_THRESHOLD
        for life in self._records.lives:
            if life.pid != burial.pid or life.born > burial.after:
                continue
            own, silent, at = False, 0.0, since
            for each in self._disturbances:
                its_own = bool(each.pid or each.slot)
                end = min(each.end + (each.rest if its_own else BEAT), burial.after)
                if not _strikes(each, life) or end <= since or each.begin >= burial.after:
                    continue
                if each.kind == WRONG_TYPE:
                    continue  # a beat goes on all the same
                own = own or its_own
                silent += max(0.0, end - max(at, each.begin))
                at = max(at, end)
            if own and silent >= ORPHAN_THRESHOLD - HELP:
                return True
        return False


def _strikes(disturbance: Disturbance, life: Life) -> bool:
    if disturbance.pid:
        return disturbance.pid == life.pid
    return disturbance.slot in ("", life.slot)
