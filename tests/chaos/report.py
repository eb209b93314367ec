"""The table of a trial, as Markdown, so that it can stand in the docs as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tests.chaos.schedule import NAMES, Fault
from tests.chaos.trial import Result

SHOWN = 40


def announcement(seed: int, faults: tuple[Fault, ...]) -> str:
    """The seed and how often what is planned."""
    counts = Counter(each.kind for each in faults)
    parts = [f"{counts[name]} x {name}" for name in NAMES]
    return f"seed {seed}: {len(faults)} faults: {', '.join(parts)}"


def table(result: Result) -> str:
    return "\n".join(["| what | number |", "| --- | --- |", *_rows(result)])


def _rows(result: Result) -> Iterator[str]:
    counts, faults = result.verdict.counts, result.faults

    def row(what: str, number: object) -> str:
        return f"| {what} | {number} |"

    def sub(numbers: Mapping[str, int]) -> Iterator[str]:
        for what, number in sorted(numbers.items()):
            yield row(f"… {what}", number)

    yield row("minutes, seed", f"{result.seconds / 60:g}, {result.seed}")
    yield row("faults", faults.total())
    yield from sub(faults)
    yield row("worker processes that lived", result.starts)
    for what in ("workers buried, dead", "workers buried, alive but silent"):
        yield row(what, counts[what])
    yield row("jobs accepted", counts["pushes accepted"])
    yield row("pushes refused (none of them ran)", counts["pushes refused"])
    yield row(
        "pushes with an open answer: there, not there",
        f"{counts['maybe, and there']}, {counts['maybe, and not there']}",
    )
    yield row("jobs that were there", counts["jobs"])
    yield row("… finished", counts["finished"])
    yield row("… dead", counts["dead"])
    yield row("… lost", counts["lost"])
    for what, number in sorted(result.verdict.graves.items()):
        yield row(f"dead, {what}", number)
    yield row("starts of `perform`", counts["runs"])
    yield row("… retries", counts["retries"])
    yield row("… double runs", result.verdict.doubles.total())
    for what, number in sorted(result.verdict.doubles.items()):
        yield row(f"double, {what}", number)
    yield row("seconds until all was done, after the last fault", f"{result.drained_in:.0f}")


def text(result: Result) -> str:
    """The table, and all that is wrong."""
    lines = [table(result), ""]
    if result.missed:
        lines.append(f"not carried out, nothing to strike: {dict(result.missed)}")
    wrong = [*result.troubles, *map(str, result.verdict.problems)]
    lines += [f"WRONG: {each}" for each in wrong[:SHOWN]]
    if len(wrong) > SHOWN:
        lines.append(f"WRONG: {len(wrong) - SHOWN} more")
    lines.append("all books agree" if not wrong else f"{len(wrong)} things are wrong")
    return "\n".join(lines)
