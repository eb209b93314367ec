"""One run: start the fleet, strike it by the plan, heal it, wait, judge."""

from __future__ import annotations

import heapq
import itertools
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import redis

from tests.chaos import aftermath, ledger, usurper
from tests.chaos.faults import Heal, Injector, Missed
from tests.chaos.fleet import Fleet
from tests.chaos.records import Records, read_pushes, read_runs, whole_lines
from tests.chaos.schedule import KEYS, Fault, plan
from tests.project.journal import JOURNAL_NAME
from tests.support.waiting import wait_until

TICK = 0.02
AGAIN = 0.2
#: Seconds that a fault waits for its target to be there again.
PATIENCE = 3.0
#: The first beat of a worker on a busy machine takes a while.
READY = 60.0
WORKERS = 4
HARD_END = "The worker did not stop in"


@dataclass
class Result:
    """What came out, and the figures around it."""

    seed: int
    seconds: float
    verdict: ledger.Verdict
    faults: Counter[str]
    missed: Counter[str]
    #: What is wrong beside single jobs: a standstill, leftovers, a crash.
    troubles: list[str] = field(default_factory=list)
    drained_in: float = 0.0
    starts: int = 0

    @property
    def good(self) -> bool:
        return not self.troubles and not self.verdict.problems


class Trial:
    """The run with this seed; what it writes lies in `directory`."""

    def __init__(self, seed: int, seconds: float, directory: Path) -> None:
        self.seed, self.seconds, self.directory = seed, seconds, directory
        self.faults = plan(seed, seconds)
        self._done: Counter[str] = Counter()
        self._missed: Counter[str] = Counter()
        self._numbers = itertools.count()
        self._heals: list[tuple[float, int, Fault, Heal]] = []
        self._again: list[tuple[float, Fault]] = []

    def run(self) -> Result:
        self._fleet = fleet = Fleet(self.directory, self.seed, self.seconds)
        self._injector = Injector(fleet)
        try:
            fleet.start()
            wait_until(
                lambda: self._beating() >= WORKERS, timeout=READY, message="all workers beat"
            )
            self._strike()
            troubles, drained_in = self._settle()
            records = self._records()
            troubles += fleet.stop()
            troubles += aftermath.leftovers(fleet.client)
            troubles += self._crashes()
            fleet.watch.save(self.directory / "watch.json")
            starts = len(fleet.watch.lives)
        finally:
            fleet.close()
        verdict = ledger.judge(records)
        return Result(
            self.seed,
            self.seconds,
            verdict,
            self._done,
            self._missed,
            troubles,
            drained_in,
            starts,
        )

    def _beating(self) -> int:
        return int(self._fleet.client.zcard(aftermath.KEYS.beats))

    # -- the faults

    def _strike(self) -> None:
        self._begun = time.monotonic()
        ahead = list(self.faults)
        while (elapsed := time.monotonic() - self._begun) < self.seconds:
            while ahead and ahead[0].at <= elapsed:
                self._begin(ahead.pop(0))
            if self._again and time.monotonic() >= self._again[0][0]:
                self._begin(self._again.pop(0)[1])
            self._heal_due(time.monotonic())
            self._fleet.tend()
            time.sleep(TICK)

    def _begin(self, fault: Fault) -> None:
        try:
            heal = self._injector.begin(fault)
        except Missed:
            if time.monotonic() - self._begun < fault.at + PATIENCE:
                self._again.append((time.monotonic() + AGAIN, fault))
                return
            self._missed[fault.kind] += 1
            self._note("missed", fault)
            return
        except redis.RedisError:  # away, by another fault; it may have been done all the same
            self._again.append((time.monotonic() + AGAIN, fault))
            return
        self._done[fault.kind] += 1
        self._note("begin", fault)
        self._heal_at(time.monotonic() + fault.seconds, fault, heal)

    def _heal_at(self, at: float, fault: Fault, heal: Heal) -> None:
        heapq.heappush(self._heals, (at, next(self._numbers), fault, heal))

    def _heal_due(self, now: float) -> None:
        while self._heals and self._heals[0][0] <= now:
            _, _, fault, heal = heapq.heappop(self._heals)
            try:
                heal()
                self._note("end", fault)
            except redis.RedisError:  # away, by another fault
                self._heal_at(time.monotonic() + AGAIN, fault, heal)

    def _note(self, word: str, fault: Fault) -> None:
        with (self.directory / "faults.log").open("a") as log:
            log.write(f"{time.time():.3f} {word} {fault.kind}: {fault.target}\n")

    # -- afterwards

    def _settle(self) -> tuple[list[str], float]:
        """Heal everything and wait for the last job."""
        healed_by = time.monotonic() + 60
        while self._heals and time.monotonic() < healed_by:
            self._heal_due(float("inf"))
            time.sleep(AGAIN)
        self._fleet.client.config_set("maxmemory", 0)
        usurper.restore_all(self._fleet.client, KEYS)
        wait_until(lambda: not self._fleet.pushing(), timeout=60, message="the pushers' end")
        began = time.monotonic()
        journal = self.directory / JOURNAL_NAME
        left = aftermath.drain(self._fleet.client, self._fleet.tend, lambda: journal.stat().st_size)
        usurper.restore_all(self._fleet.client, KEYS)
        return [f"standstill: {left}"] if left else [], time.monotonic() - began

    def _records(self) -> Records:
        records = Records(
            runs=read_runs(whole_lines(self.directory / JOURNAL_NAME)),
            graves=aftermath.graves(self._fleet.client),
            lives=self._fleet.watch.lives,
            burials=self._fleet.watch.burials,
            disturbances=self._injector.disturbances,
        )
        for path in sorted(self.directory.glob("pushes-*")):
            records.pushes |= read_pushes(whole_lines(path))
        text = json.dumps([vars(each) for each in records.disturbances], indent=1)
        (self.directory / "disturbances.json").write_text(text)
        return records

    def _crashes(self) -> list[str]:
        """Lines that no fault from outside excuses; a stop that Redis holds up is ended hard, as it says."""
        found = []
        for path in sorted(self.directory.glob("*.log")):
            for line in path.read_text(errors="replace").splitlines():
                if HARD_END in line:
                    continue
                if " CRITICAL " in line or line.startswith("Fatal Python error"):
                    found.append(f"{path.name}: {line}")
        return found
