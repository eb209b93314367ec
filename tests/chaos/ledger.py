"""The verdict: accepted = finished + dead, and no run twice without a reason that the docs allow.

Works on `Records` alone, so that tests can give it made-up ones. What it finds wrong is a `Problem`;
a problem is a fault of the product (or of this suite), never something to be expected.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tests.chaos.excuses import Excuses
from tests.chaos.records import Grave, Push, Records, Run

#: `COGWORKER_MAX_ORPHANINGS`: a job that was running in more dead workers than this is buried.
MAX_ORPHANINGS = 3
ORPHANED = "JobOrphanedError"


@dataclass(frozen=True)
class Problem:
    """Something that must not be; `name` is that of the job."""

    what: str
    name: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.name} {self.detail}".rstrip()


@dataclass
class Verdict:
    """The sums, and what is wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    doubles: Counter[str] = field(default_factory=Counter)
    graves: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)


def judge(records: Records) -> Verdict:
    """Check all books against each other."""
    verdict = Verdict()
    runs: dict[str, list[Run]] = defaultdict(list)
    for run in sorted(records.runs, key=lambda each: each.start):
        runs[run.name].append(run)
    graves = {each.name: each for each in records.graves}
    excuses = Excuses(records)
    for name in sorted(runs.keys() | graves.keys()):
        if name not in records.pushes:
            verdict.problems.append(Problem("run or dead, though never pushed", name))
    if len(graves) < len(records.graves):
        often = Counter(each.name for each in records.graves)
        verdict.problems += [
            Problem("dead more than once", name) for name, times in often.items() if times > 1
        ]
    for push in records.pushes.values():
        _Case(push, runs[push.name], graves.get(push.name), excuses, verdict).judge()
    _judge_burials(records, excuses, verdict)
    return verdict


def _judge_burials(records: Records, excuses: Excuses, verdict: Verdict) -> None:
    for burial in records.burials:
        if excuses.was_dead(burial):
            verdict.counts["workers buried, dead"] += 1
            continue
        verdict.counts["workers buried, alive but silent"] += 1
        if not excuses.was_silent(burial):
            detail = f"at {burial.after:.3f}, though nothing had kept it from beating"
            verdict.problems.append(Problem("living worker buried", str(burial.pid), detail))


@dataclass
class _Case:
    """One job: what was promised, what happened."""

    push: Push
    runs: list[Run]
    grave: Grave | None
    excuses: Excuses
    verdict: Verdict

    def judge(self) -> None:
        counts, push = self.verdict.counts, self.push
        seen = bool(self.runs or self.grave)
        counts[f"pushes {push.outcome}"] += 1
        if push.outcome == "refused":
            if seen:
                self._problem("refused, and there all the same")
            return
        if push.outcome == "maybe":
            counts["maybe, and there" if seen else "maybe, and not there"] += 1
            if not seen:
                return
        counts["jobs"] += 1
        counts["runs"] += len(self.runs)
        self._check_end()
        self._check_runs()
        if self.grave is not None:
            self._check_grave(self.grave)

    def _problem(self, what: str, detail: str = "") -> None:
        self.verdict.problems.append(Problem(what, self.push.name, detail or self._history()))

    def _history(self) -> str:
        parts = [
            f"[attempt {run.attempt} in {run.pid} from {run.start:.3f} "
            + ("to no end]" if run.end is None else f"to {run.end:.3f} {run.good and 'ok'}]")
            for run in self.runs
        ]
        return f"({self.push.kind}, jid {self.push.jid}) {' '.join(parts)}"

    def _check_end(self) -> None:
        finished = any(run.good for run in self.runs)
        if self.grave is not None:
            self.verdict.counts["dead"] += 1
            self.verdict.counts["dead, though perform had ended well"] += finished
        elif finished:
            self.verdict.counts["finished"] += 1
        else:
            self.verdict.counts["lost"] += 1
            self._problem("LOST")

    def _check_runs(self) -> None:
        if self.push.jid and any(run.jid != self.push.jid for run in self.runs):
            self._problem("run under another jid")
        if self.push.kind == "shot" and len(self.runs) > 1:
            self._problem("at most once, and started twice")
            return
        for earlier, later in itertools.pairwise(self.runs):
            if (
                later.attempt == earlier.attempt + 1
                and earlier.end is not None
                and not earlier.good
            ):
                self.verdict.counts["retries"] += 1
                continue
            why = self.excuses.of_double(earlier, later)
            if later.attempt != earlier.attempt:
                # A late failure of a worker that was taken for dead changes nothing, so the number stays.
                why = None
            self.verdict.doubles[why or "FORBIDDEN"] += 1
            if why is None:
                self._problem("run twice without a reason")

    def _check_grave(self, grave: Grave) -> None:
        push = self.push
        orphaned = grave.error.endswith(ORPHANED)
        failed = any(run.end is not None and not run.good for run in self.runs)
        why = f"{push.kind}: {'its worker died' if orphaned else 'failed'}"
        self.verdict.graves[why] += 1
        if push.kind == "killer":
            if not orphaned or len(self.runs) > MAX_ORPHANINGS + 1:
                self._problem("killer not buried as it should", grave.message)
        elif not orphaned:
            if not failed or push.kind not in ("doomed", "shot"):
                self._problem("dead without a reason", f"{grave.error}: {grave.message}")
        elif push.kind == "shot":
            if not all(self.excuses.lost_its_worker(run) for run in self.runs):
                self._problem("buried, though its worker lived", grave.message)
        elif sum(map(self.excuses.lost_its_worker, self.runs)) <= MAX_ORPHANINGS:
            self._problem("innocent buried", f"{grave.message} {self._history()}")
