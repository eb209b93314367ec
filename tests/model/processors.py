"""The processor of a worker: `worker/processor.py` and `worker/hand.py`. It runs one job at a time.

Before an at-most-once job runs, its start is marked in Redis, and only a confirmation lets it run.
The end of a run counts only while the worker believes the job to be its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import scripts
from tests.model.changes import broke, spend, with_identity, with_job, with_packet, with_worker
from tests.model.invariants import MORE_THAN_ONCE, STARTED_AGAIN, STARTED_BY_A_STRANGER
from tests.model.rules import Rules, Size
from tests.model.states import End, Mark, Phase, Run, State, Step, Worker


def steps(state: State, place: int, rules: Rules, size: Size) -> Iterator[Step]:
    worker = state.workers[place]
    if not worker.runs:
        if worker.life == "up":
            yield from _take(state, place, rules, size)
        return
    run = worker.runs[0]
    name = f"worker {place}"
    if run.phase == "running":
        yield from _end(state, place, run, size)
    elif run.phase == "taken":
        yield Step(f"{name} asks for the mark of job {run.job}", _phase(state, place, "asked"))
    elif run.phase == "asked":
        after, ours = scripts.mark_started(state, Mark(run.identity, run.ticket), rules)
        word = "yes" if ours else "no"
        after = _phase(after, place, "yes" if ours else "no")
        yield Step(f"Redis marks job {run.job} for {name}: {word}", after)
    elif run.phase == "yes" and not (rules.given_up_is_not_started and given_up(worker, run)):
        yield Step(f"{name} hears yes and starts job {run.job}", _start_once(state, place, run))
    else:
        yield Step(f"{name} does not start job {run.job}", file(state, place, run, "drop"))
    if run.phase in ("asked", "yes", "no") and state.faults.losses:
        yield from _without_answer(state, place, run)


def _take(state: State, place: int, rules: Rules, size: Size) -> Iterator[Step]:
    worker = state.workers[place]
    may_take = ("",) if rules.hand_decides else ("", "front")
    offered = next((each for each in worker.held if not each.taken and each.end in may_take), None)
    if offered is None:
        return
    held = tuple(each._replace(taken=True) if each is offered else each for each in worker.held)
    run = Run(worker.identity, offered.ticket, offered.job, "taken")
    after = with_worker(state, place, worker._replace(held=held, runs=(run,)))
    if size.at_most_once:
        yield Step(f"worker {place} takes job {run.job}", after)
    else:
        yield Step(f"worker {place} starts job {run.job}", start(after, place, run))


def start(state: State, place: int, run: Run) -> State:
    """The job runs from here on. This is where the rule about starts is judged: once in each stay,
    and only with the worker that Redis knows as its holder. One that was taken for dead, and does
    not know it yet, may start what it held.
    """
    state = _phase(state, place, "running")
    own = state.redis.identities[run.identity]
    entry = next((each for each in own.entries if each.ticket == run.ticket), None)
    if entry is None or entry.job != run.job:
        if own.tombstone != "buried" and not given_up(state.workers[place], run):
            state = broke(state, STARTED_BY_A_STRANGER)
    else:
        if entry.started:
            state = broke(state, STARTED_AGAIN)
        entries = tuple(
            each._replace(started=True) if each is entry else each for each in own.entries
        )
        state = with_identity(state, run.identity, own._replace(entries=entries))
    return state


def _start_once(state: State, place: int, run: Run) -> State:
    """The start of an at-most-once job: for it there is no reason to start again."""
    state = start(state, place, run)
    job = state.jobs[run.job]
    if job.starts:
        state = broke(state, MORE_THAN_ONCE)
    return with_job(state, run.job, job._replace(starts=1))


def given_up(worker: Worker, run: Run) -> bool:
    """Whether the worker has settled the job over the processor's head."""
    return worker.life == "stopping" and not any(
        each.ticket == run.ticket and not each.end for each in worker.held
    )


def _end(state: State, place: int, run: Run, size: Size) -> Iterator[Step]:
    name = f"worker {place}"
    yield Step(f"{name} ends job {run.job}", file(state, place, run, "ack"))
    if state.faults.failures:
        spent = spend(state, "failures")
        if not size.at_most_once:
            again = file(spent, place, run, "retry")
            yield Step(f"job {run.job} fails in {name}, to be retried", again, fault=True)
        for_good = file(spent, place, run, "dead")
        yield Step(f"job {run.job} fails in {name} for good", for_good, fault=True)


def _without_answer(state: State, place: int, run: Run) -> Iterator[Step]:
    """The start cannot be marked, as far as we know: the job goes back unrun."""
    after = file(spend(state, "losses"), place, run, "front")
    if run.phase != "asked":
        yield Step(f"the reply about job {run.job}'s mark is lost", after, fault=True)
        return
    yield Step(f"the mark of job {run.job} is lost", after, fault=True)
    late = with_packet(after, Mark(run.identity, run.ticket))
    yield Step(f"the mark of job {run.job} is late", late, fault=True)


def _phase(state: State, place: int, phase: Phase) -> State:
    worker = state.workers[place]
    return with_worker(state, place, worker._replace(runs=(worker.runs[0]._replace(phase=phase),)))


def file(state: State, place: int, run: Run, end: End) -> State:
    """The processor is done, and the fetcher hears where the job goes, if it is still ours."""
    worker = state.workers[place]
    held = worker.held
    if run.identity == worker.identity:
        held = tuple(
            each._replace(end=end) if each.ticket == run.ticket and not each.end else each
            for each in held
        )
    return with_worker(state, place, worker._replace(held=held, runs=()))
