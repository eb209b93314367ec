"""The look at the entries, about once a second in each worker's scheduler thread.

Between two slots it costs nothing but a comparison; every 30 s, and whenever a slot is due, one round
trip reads Redis's time, the last slots and the disabled entries. What is due is pushed; who is second is
refused by the script and has done nothing.

* **New**: an entry without a last slot begins after the newest one, without a job (`run_at_first_start`
makes one). So does one whose cron line or zone differs from what is published.
* **Missed**: slots that nobody saw in time. `catch_up` says whether none, one, or the newest `limit` of them
become jobs; the ledger has a line about the others (see `missed`).
* **Blocked**: refused for another reason than the slot (the run before it has not ended). Tried for 15 s,
then the slot counts as skipped. An entry with `unique_run` is not looked at before this worker knows
the fate of all dead workers, nor right after an outage: the lock of a run may have ended meanwhile.
* **Unusable**: a last slot of the wrong type, with junk, or far ahead. The entry begins anew, like a new one, and
the ledger says so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import redis

from django_cogworker.conf import get_config
from django_cogworker.exceptions import CogworkerError, PushError
from django_cogworker.features.periodic import entries
from django_cogworker.features.periodic.clock import Clock
from django_cogworker.features.periodic.entry import Entry
from django_cogworker.features.periodic.missed import BLOCKED, UNUSABLE, Plan, plan, skipped
from django_cogworker.features.periodic.pushing import push_slot
from django_cogworker.features.periodic.records import Records, running_ttl, slot_in
from django_cogworker.features.periodic.state import State
from django_cogworker.store.errors import is_unavailable
from django_cogworker.store.scripted import text

logger = logging.getLogger("django_cogworker")

#: A slot of an entry that was watched all the time is on time for so long (seconds).
WATCHED = 5.0
#: So late may any slot be, and count as on time: somebody else may be about to claim it.
PUNCTUAL = 10.0
#: Slots on time that one look takes up.
MOST = 100
#: A slot that is blocked is tried for so long.
PATIENCE = 15.0
#: After an outage every worker has beaten, and so holds its locks again, within so long.
RECOVERED = 10.0
#: The pause of an entry that fails, doubled each time up to the second.
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
QUIET_LOG = 60.0


class Ticker:
    def __init__(self) -> None:
        self._clock = Clock()
        self._states: dict[tuple[str, str], State] = {}
        self._disabled: frozenset[str] = frozenset()
        self._published: tuple[Entry, ...] | None = None
        self._complained: dict[str, float] = {}
        self._fates_known: Callable[[], bool] = lambda: True
        self._started_at = time.monotonic()
        self._trouble_at = float("-inf")

    def start_anew(self, fates_known: Callable[[], bool]) -> None:
        """A worker starts: publish again, and trust no memory of another one. `fates_known`: whether it
        knows which workers are dead, and has brought back what they held.
        """
        self._fates_known = fates_known
        self._started_at = time.monotonic()
        self._published = None
        self._states.clear()
        self._clock = Clock()

    def tick(self) -> None:
        found = entries.all_entries()
        if get_config().testing is not None or not (found or self._published is None):
            return
        try:
            records = Records()
            if self._published is not found:
                self._introduce(records, found)
            if self._clock.is_stale or self._something_due(found):
                self._read(records, found)
                for entry in found:
                    self._look_safely(records, entry)
        except (redis.RedisError, OSError) as error:
            self._trouble_at = time.monotonic()
            self._complain("reading", "Periodic entries cannot be read", error)

    def _introduce(self, records: Records, found: tuple[Entry, ...]) -> None:
        """Begin entries whose schedule was changed after now, then publish all."""
        before = records.published()
        if found:
            records.keep(found)
            self._read(records, found)
        for entry in found:
            known = before.get(entry.name)
            if known is not None and known.get("digest") != entry.digest:
                records.raise_to(entry, self._newest(entry), self._clock.now())
                self._state(entry).last = None
        try:
            records.publish(found)
        except (
            redis.ResponseError
        ) as error:  # a key of the wrong type: the entries run all the same
            self._complain("publishing", "Periodic entries cannot be published", error)
        self._published = found
        if found:
            self._read(records, found)

    def _something_due(self, found: tuple[Entry, ...]) -> bool:
        now = self._clock.now()
        return any(self._is_due(each, now) for each in found)

    def _is_due(self, entry: Entry, now: float) -> bool:
        state = self._state(entry)
        if entry.name in self._disabled or time.monotonic() < state.rest_until:
            return False
        if state.last is None:
            return True
        return state.next_due is not None and state.next_due <= now

    def _read(self, records: Records, found: tuple[Entry, ...]) -> None:
        pipe = records.client.pipeline(transaction=False)
        pipe.time()
        pipe.smembers(records.disabled)
        for each in found:
            pipe.get(records.last(each))
        moment, disabled, *lasts = pipe.execute(raise_on_error=False)
        if isinstance(moment, Exception):
            raise moment
        self._clock.set(moment)
        if isinstance(disabled, Exception):
            self._complain("disabled", "Which periodic entries are disabled is unknown", disabled)
            disabled = ()
        self._disabled = frozenset(text(each) for each in disabled)
        for entry, last in zip(found, lasts, strict=True):
            self._learn(entry, last)

    def _learn(self, entry: Entry, raw: Any) -> None:
        state = self._state(entry)
        known = slot_in(raw, self._clock.now())
        state.unusable = known is None and raw is not None
        if known != state.last or state.next_due is None:
            state.last = known
            state.next_due = None if known is None else entry.cron.next_after(known)

    def _look_safely(self, records: Records, entry: Entry) -> None:
        state = self._state(entry)
        if entry.name in self._disabled or time.monotonic() < state.rest_until:
            return
        try:
            self._look(records, entry, state)
            state.pause = state.rest_until = 0.0
        except (redis.RedisError, OSError, CogworkerError) as error:
            away = error.__cause__ if isinstance(error, PushError) else error
            if isinstance(away, (redis.RedisError, OSError)) and is_unavailable(away):
                raise redis.ConnectionError(str(error)) from error
            self._failed(entry, state, error)
        except Exception as error:  # a middleware of the project, for instance: others must go on
            self._failed(entry, state, error)

    def _failed(self, entry: Entry, state: State, error: Exception) -> None:
        state.pause = min(max(FIRST_PAUSE, state.pause * 2), LONGEST_PAUSE)
        state.rest_until = time.monotonic() + state.pause
        logger.error("%s cannot be enqueued: %s", entry, error, exc_info=error)

    def _look(self, records: Records, entry: Entry, state: State) -> None:
        now = self._clock.now()
        if state.last is None:
            self._begin(records, entry, state)
            return
        if state.next_due is None or state.next_due > now:
            state.looked_at = now
            return
        found = self._due(entry, state, state.last, now)
        if entry.unique_run and not self._locks_are_sure():
            return
        if self._take(records, entry, state, found, now):
            self._learn(entry, records.client.get(records.last(entry)))

    def _due(self, entry: Entry, state: State, last: int, now: float) -> Plan:
        """The slots since the last one. Those that came while this process watched are on time, also
        where they are still blocked; an entry that fails is watched too, but has no backlog.
        """
        if now - state.looked_at > WATCHED + state.pause:
            state.since = now - PUNCTUAL
        state.looked_at = now
        return plan(entry, last, state.since, now, 1 if state.pause else MOST)

    def _locks_are_sure(self) -> bool:
        """Whether a lock that is not there means that no run goes on. Not waited for without end: what a
        look at dead workers cannot read for so long nobody may ever read.
        """
        now = time.monotonic()
        known = self._fates_known() or now - self._started_at > running_ttl()
        return known and now - self._trouble_at > RECOVERED

    def _take(self, records: Records, entry: Entry, state: State, found: Plan, now: float) -> bool:
        """Carry out a plan. False where a slot is blocked and later ones have to wait."""
        lines = found.left_out
        for slot in found.wanted:
            if not self._enqueue(records, entry, state, slot, now, lines):
                return False
            lines = ()
        # Of catch_up "skip": no job is there to bring them.
        if lines and records.raise_to(entry, lines[-1]["slot"], now, lines):
            self._tell(entry, lines)
        return True

    def _newest(self, entry: Entry) -> int:
        """The newest slot up to now; now where there was none."""
        now = self._clock.now()
        return next(iter(entry.cron.newest(now)), int(now))

    def _begin(self, records: Records, entry: Entry, state: State) -> None:
        slot, now = self._newest(entry), self._clock.now()
        if state.unusable:
            if records.begin_anew(entry, slot, now, skipped(slot, now, UNUSABLE)):
                logger.error("%s begins anew after slot %d: %s.", entry, slot, UNUSABLE)
        elif entry.run_at_first_start:
            self._enqueue(records, entry, state, slot, now)
        else:
            records.prime(entry, slot)
        self._learn(entry, records.client.get(records.last(entry)))

    def _enqueue(
        self,
        records: Records,
        entry: Entry,
        state: State,
        slot: int,
        now: float,
        lines: tuple[dict[str, Any], ...] = (),
    ) -> bool:
        """Push the job of a slot, with lines about those left out before it. False where it is blocked
        and later slots have to wait.
        """
        jid = push_slot(entry, slot, lines)
        if jid is not None:
            self._tell(entry, lines)
            logger.info("%s: slot %d is enqueued as %s.", entry, slot, jid, extra={"jid": jid})
            state.blocked_since = None
            return True
        last = slot_in(records.client.get(records.last(entry)), now)
        if last is not None and last >= slot:
            state.blocked_since = None
            return True  # another worker was first
        if state.blocked_since is None:
            state.blocked_since = now
        if now - max(float(slot), state.blocked_since) < PATIENCE:
            return False
        if records.raise_to(entry, slot, now, (*lines, skipped(slot, now, BLOCKED))):
            self._tell(entry, lines)
            logger.warning("%s: slot %d is skipped: it was blocked for 15 s.", entry, slot)
        return True

    @staticmethod
    def _tell(entry: Entry, lines: tuple[dict[str, Any], ...]) -> None:
        for each in lines:
            logger.warning(
                "%s: slots up to %d are left out, %d in all: %s.",
                entry,
                each["slot"],
                each.get("count", 1),
                each["skipped"],
            )

    def _state(self, entry: Entry) -> State:
        key = (entry.name, entry.digest)
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = State()
        return state

    def _complain(self, what: str, sentence: str, error: Any) -> None:
        """Once a minute for each thing."""
        now = time.monotonic()
        if now - self._complained.get(what, float("-inf")) >= QUIET_LOG:
            self._complained[what] = now
            logger.error("%s: %s", sentence, error)
