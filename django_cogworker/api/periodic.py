"""Periodic entries: when they are due, what became of their slots, and the means to steer them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from django_cogworker import client
from django_cogworker.features.periodic import entries
from django_cogworker.features.periodic.entry import Entry
from django_cogworker.features.periodic.missed import DISABLED, left_out
from django_cogworker.features.periodic.records import Records
from django_cogworker.jobs.masking import visible_arguments
from django_cogworker.payload.display import arguments_text
from django_cogworker.store.scripted import text
from django_cogworker.store.store import get_store


@dataclasses.dataclass(frozen=True)
class PeriodicEntry:
    """One entry, as this process has it."""

    entry: Entry

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def job(self) -> str:
        """The name of the job class."""
        return self.entry.job

    @property
    def cron(self) -> str:
        return self.entry.cron.line

    @property
    def tz(self) -> str:
        return self.entry.cron.zone_name

    @property
    def arguments(self) -> str:
        """Its job's arguments as one line of text, as they may be shown: sensitive ones are masked."""
        return arguments_text(*visible_arguments(self.entry.payload()))

    @property
    def disabled(self) -> bool:
        records = Records()
        return bool(records.client.sismember(records.disabled, self.name))

    def next_runs(self, count: int = 1) -> list[int]:
        """The next slots in epoch seconds, by Redis's clock; fewer where the line is never due again."""
        return self.runs_after(_now(), count)

    def runs_after(self, moment: float, count: int = 1) -> list[int]:
        """The slots after that moment. Asks no Redis."""
        return list(islice(self.entry.cron.slots(moment), count))

    def ledger(self) -> list[dict[str, Any]]:
        """The last 50 slots, the newest first: `slot`, `at` (when it was enqueued or given up), and
        `jid` and `outcome`, or `skipped` with the reason. More than a few that were skipped together
        have one line with the newest as `slot`, the `first`, and how many as `count` (`or_more`: true
        where that is not all).
        """
        return Records().read_ledger(self.name)

    def disable(self) -> bool:
        """Enqueue no more of its slots, in any worker; false where that was so."""
        records = Records()
        return bool(records.client.sadd(records.disabled, self.name))

    def enable(self) -> bool:
        """Enqueue its slots again. Of those that came meanwhile the newest alone counts as missed."""
        records, now = Records(), _now()
        if records.client.sismember(records.disabled, self.name):
            last = records.read_last(self.entry, now)
            newest = self.entry.cron.newest(now)
            if last is not None and newest:
                lines = left_out(self.entry, last, newest[0] - 1, now, DISABLED)
                if lines:
                    records.raise_to(self.entry, lines[-1]["slot"], now, lines)
        return bool(records.client.srem(records.disabled, self.name))

    def run_now(self) -> str | None:
        """Enqueue its job as an ordinary one, also where it is disabled; the jid. Changes no slot."""
        return client.enqueue(self.entry.payload(), on_commit=False)


@dataclasses.dataclass(frozen=True, slots=True)
class PeriodicState:
    """One entry at one moment. `next_run`: its next slot (epoch seconds), `None` where it is never due again, or
    switched off. `last`: the newest line of its ledger, or `None`.
    """

    entry: PeriodicEntry
    disabled: bool
    next_run: int | None
    last: dict[str, Any] | None


class PeriodicSet:
    """The entries of this project that can be used, in the order of their declaration."""

    def __iter__(self) -> Iterator[PeriodicEntry]:
        return map(PeriodicEntry, entries.all_entries())

    def __len__(self) -> int:
        return len(entries.all_entries())

    def __getitem__(self, name: str) -> PeriodicEntry:
        """Raises `UnknownPeriodicEntry`."""
        return PeriodicEntry(entries.find(name))

    def published(self) -> dict[str, dict[str, Any]]:
        """What the worker that started last has published, by name."""
        return Records().published()

    def disabled(self) -> set[str]:
        """The names of all disabled entries, in one round trip."""
        records = Records()
        return set(map(text, records.client.smembers(records.disabled)))

    def states(self, found: Iterable[PeriodicEntry] | None = None) -> list[PeriodicState]:
        """All entries, or these, with what there is to say of each. Two round trips."""
        wanted = list(self if found is None else found)
        disabled, now = self._disabled_and_time()
        newest = Records().newest([each.name for each in wanted])
        return [
            PeriodicState(
                each,
                each.name in disabled,
                None if each.name in disabled else next(iter(each.runs_after(now, 1)), None),
                newest[each.name],
            )
            for each in wanted
        ]

    def _disabled_and_time(self) -> tuple[set[str], float]:
        """The names of all disabled entries, and Redis's time, in one round trip."""
        records = Records()
        pipe = records.client.pipeline(transaction=False)
        pipe.smembers(records.disabled)
        pipe.time()
        names, (seconds, microseconds) = pipe.execute()
        return set(map(text, names)), float(seconds) + float(microseconds) / 1e6


def _now() -> float:
    client: Any = get_store().client
    seconds, microseconds = client.time()
    return float(seconds) + float(microseconds) / 1e6
