"""The look at the entries, about once a second in each worker's scheduler thread.

Between two slots it costs nothing but a comparison; every 30 s, and whenever a slot is due, one round
trip reads Redis's time, the last slots and the disabled entries. What is due is pushed; who is second is
refused by the script and has done nothing.

* **New**: an entry without a last slot begins after the newest one, without a job (`run_at_first_start`
makes one). So does one whose cron line or zone differs from what is published.
* **Missed**: slots that nobody saw in time. `catch_up` says whether none, one, or the newest `limit` of them
become jobs.
* **Blocked**: refused for another reason than the slot (the run before it has not ended). Tried for 15 s,
then the slot counts as skipped.
"""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar
from typing import Any

import redis

from django_cogworker import client
from django_cogworker.conf import get_config
from django_cogworker.exceptions import CogworkerError, PushError
from django_cogworker.features.periodic import entries
from django_cogworker.features.periodic.clock import Clock
from django_cogworker.features.periodic.entry import Entry
from django_cogworker.features.periodic.records import Records
from django_cogworker.store.errors import is_unavailable
from django_cogworker.store.scripted import text

logger = logging.getLogger("django_cogworker")

#: A slot of an entry that was watched all the time is on time for so long (seconds).
WATCHED = 5.0
#: So late may a slot be that nobody was there for, and count as on time.
PUNCTUAL = 10.0
#: A slot that is blocked is tried for so long.
BLOCKED = 15.0
#: The pause of an entry that fails, doubled each time up to the second.
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
QUIET_LOG = 60.0

#: The entry and slot for which this very push is made: its guards are wanted.
claiming: ContextVar[Entry | None] = ContextVar("cogworker_claiming_slot", default=None)


class _State:
    """What this process knows of one entry."""

    def __init__(self) -> None:
        self.last: int | None = None
        self.next_due: int | None = None
        self.looked_at = float("-inf")  # Redis's time of the last good look
        self.blocked: tuple[int, float] | None = None
        self.rest_until = 0.0  # monotonic
        self.pause = 0.0


class Ticker:
    def __init__(self) -> None:
        self._clock = Clock()
        self._states: dict[tuple[str, str], _State] = {}
        self._disabled: frozenset[str] = frozenset()
        self._published: tuple[Entry, ...] | None = None
        self._complained: dict[str, float] = {}

    def start_anew(self) -> None:
        """A worker starts: publish again, and trust no memory of another one."""
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
            self._complain("reading", "Periodic entries cannot be read", error)

    def _introduce(self, records: Records, found: tuple[Entry, ...]) -> None:
        """Begin entries whose schedule was changed after now, then publish all."""
        before = records.published()
        if found:
            self._read(records, found)
        for entry in found:
            known = before.get(entry.name)
            if known is not None and known.get("digest") != entry.digest:
                records.raise_to(entry, self._newest(entry))
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
        if state.last is None:
            return True
        if state.next_due is None or entry.name in self._disabled:
            return False
        return state.next_due <= now and time.monotonic() >= state.rest_until

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

    def _learn(self, entry: Entry, last: Any) -> None:
        state = self._state(entry)
        if isinstance(last, Exception) or (last is not None and not last.isdigit()):
            self._complain(entry.name, f"The last slot of {entry} is unusable", last)
            state.next_due = state.last = -1
            state.next_due = None
            return
        known = None if last is None else int(last)
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

    def _failed(self, entry: Entry, state: _State, error: Exception) -> None:
        state.pause = min(max(FIRST_PAUSE, state.pause * 2), LONGEST_PAUSE)
        state.rest_until = time.monotonic() + state.pause
        logger.error("%s cannot be enqueued: %s", entry, error, exc_info=error)

    def _look(self, records: Records, entry: Entry, state: _State) -> None:
        now = self._clock.now()
        if state.last == -1:
            return
        if state.last is None:
            self._begin(records, entry)
            return
        if state.next_due is not None and state.next_due <= now:
            on_time, missed = self._due(entry, state, now)
            for slot in missed if entry.catch_up == "skip" else ():
                line = {"slot": slot, "at": now, "skipped": "missed, and catch_up is 'skip'"}
                if records.raise_to(entry, slot, line):
                    logger.warning("%s: slot %d was missed and is skipped.", entry, slot)
            wanted = [*(missed if entry.catch_up != "skip" else ()), *on_time]
            for slot in wanted:
                if not self._enqueue(records, entry, state, slot, now):
                    return
            self._learn(entry, records.client.get(records.last(entry)))
        state.looked_at = now

    def _due(self, entry: Entry, state: _State, now: float) -> tuple[list[int], list[int]]:
        """The slots since the last one: those on time, and of the missed ones those that count."""
        last = float(state.last or 0)
        watched = now - state.looked_at <= WATCHED
        begin = state.looked_at if watched else now - PUNCTUAL
        on_time = entry.cron.newest(now, max(last, begin), limit=100 if watched else 1)
        limit = entry.limit if entry.catch_up == "all" else 1
        if on_time and entry.catch_up == "once":
            return on_time, []
        end = on_time[0] - 0.5 if on_time else now
        return on_time, (entry.cron.newest(end, last, limit=limit) if end > last else [])

    def _newest(self, entry: Entry) -> int:
        """The newest slot up to now; now where there was none."""
        now = self._clock.now()
        return next(iter(entry.cron.newest(now)), int(now))

    def _begin(self, records: Records, entry: Entry) -> None:
        slot = self._newest(entry)
        state = self._state(entry)
        if entry.run_at_first_start:
            self._enqueue(records, entry, state, slot, self._clock.now())
        else:
            records.prime(entry, slot)
        self._learn(entry, records.client.get(records.last(entry)))

    def _enqueue(
        self, records: Records, entry: Entry, state: _State, slot: int, now: float
    ) -> bool:
        """Push the job of a slot. False where it is blocked and later slots have to wait."""
        payload = {**entry.payload(), "periodic": entry.name, "slot": slot}
        if entry.unique_run:
            payload["periodic_lock"] = True
        token = claiming.set(entry)
        try:
            jid = client.enqueue(payload, on_commit=False)
        finally:
            claiming.reset(token)
        if jid is not None:
            logger.info("%s: slot %d is enqueued as %s.", entry, slot, jid, extra={"jid": jid})
            state.blocked = None
            return True
        last = records.client.get(records.last(entry))
        if last is not None and last.isdigit() and int(last) >= slot:
            state.blocked = None
            return True  # another worker was first
        if state.blocked is None or state.blocked[0] != slot:
            state.blocked = (slot, now)
        if now - max(float(slot), state.blocked[1]) < BLOCKED:
            return False
        line = {"slot": slot, "at": now, "skipped": "the run before it had not ended"}
        if records.raise_to(entry, slot, line):
            logger.warning("%s: slot %d is skipped: it was blocked for 15 s.", entry, slot)
        state.blocked = None
        return True

    def _state(self, entry: Entry) -> _State:
        key = (entry.name, entry.digest)
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State()
        return state

    def _complain(self, what: str, sentence: str, error: Any) -> None:
        """Once a minute for each thing."""
        now = time.monotonic()
        if now - self._complained.get(what, float("-inf")) >= QUIET_LOG:
            self._complained[what] = now
            logger.error("%s: %s", sentence, error)
