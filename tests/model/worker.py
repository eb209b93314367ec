"""The life of a worker: it stops in good order (`worker/manager.py`), or dies at any moment.

One worker always lives on: that is the condition under which anything is promised.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import fetcher, processors, scripts
from tests.model.changes import spend, with_packet, with_worker
from tests.model.rules import Rules, Size
from tests.model.states import End, Leave, Mark, State, Step, Worker

GONE = Worker("gone", -1, False)


def steps(state: State, place: int, rules: Rules, size: Size) -> Iterator[Step]:
    worker = state.workers[place]
    if worker.life == "gone":
        return
    yield from fetcher.steps(state, place, rules, size)
    yield from processors.steps(state, place, rules, size)
    if state.faults.returns and any(not each.taken and not each.end for each in worker.held):
        returned = _give_back_untaken(spend(state, "returns"), place)
        yield Step(f"worker {place} gives back what it has not started", returned, fault=True)
    if worker.life == "stopping":
        yield from _stopping(state, place, rules, size)
    if any(each.life == "up" for other, each in enumerate(state.workers) if other != place):
        yield from _end(state, place, size)


def _give_back_untaken(state: State, place: int) -> State:
    worker = state.workers[place]
    held = tuple(
        each if each.taken or each.end else each._replace(end="front") for each in worker.held
    )
    return with_worker(state, place, worker._replace(held=held))


def _stopping(state: State, place: int, rules: Rules, size: Size) -> Iterator[Step]:
    worker = state.workers[place]
    if worker.runs and not processors.given_up(worker, worker.runs[0]):
        what = f"worker {place} waits no longer for job {worker.runs[0].job}"
        yield Step(what, _abandon(state, place, size))
    if not worker.held and not worker.uncertain and worker.asked is None:
        yield from _leave(state, place, rules)
    elif state.faults.losses and all(each.end for each in worker.held):
        # Redis did not confirm in time.
        spent = spend(state, "losses")
        for what, after in _ways_to_die(spent, place):
            after = scripts.leave(after, Leave(worker.identity), rules)
            yield Step(f"worker {place} leaves without a word from Redis{what}", after, fault=True)


def _abandon(state: State, place: int, size: Size) -> State:
    """Settle what runs over the head of its processor. An at-most-once job that began is buried; one
    that did not yet, as far as is known, goes back.
    """
    worker = state.workers[place]
    run = worker.runs[0]
    end: End = "dead" if size.at_most_once and run.phase == "running" else "front"
    held = tuple(
        each._replace(end=end) if each.ticket == run.ticket and not each.end else each
        for each in worker.held
    )
    return with_worker(state, place, worker._replace(held=held))


def _leave(state: State, place: int, rules: Rules) -> Iterator[Step]:
    packet = Leave(state.workers[place].identity)
    gone = with_worker(state, place, GONE)
    yield Step(f"worker {place} leaves", scripts.leave(gone, packet, rules))
    if state.faults.losses:
        spent = spend(gone, "losses")
        yield Step(f"worker {place} leaves, and its word is lost", spent, fault=True)
        late = with_packet(spent, packet)
        yield Step(f"worker {place} leaves, and its word is late", late, fault=True)


def _end(state: State, place: int, size: Size) -> Iterator[Step]:
    """The beginning of the end, in peace or by force."""
    if place and not size.all_may_fail:
        return
    if state.faults.crashes:
        for what, after in _ways_to_die(spend(state, "crashes"), place):
            yield Step(f"worker {place} is killed{what}", after, fault=True)
    if state.faults.stops and state.workers[place].life == "up":
        worker = state.workers[place]._replace(life="stopping")
        after = _give_back_untaken(with_worker(spend(state, "stops"), place, worker), place)
        yield Step(f"worker {place} is told to stop", after, fault=True)


def _ways_to_die(state: State, place: int) -> Iterator[tuple[str, State]]:
    """What it had sent may be lost with it, or arrive later."""
    worker = state.workers[place]
    # Taken from the queue and not written yet, in the variant where those are two steps.
    limbo = tuple(each for each in state.redis.limbo if each[0] != worker.identity)
    gone = with_worker(state._replace(redis=state.redis._replace(limbo=limbo)), place, GONE)
    yield "", gone
    if worker.asked is not None and worker.reply is None:
        yield ", and its request is late", with_packet(gone, worker.asked)
    for run in worker.runs:
        if run.phase == "asked":
            yield ", and its mark is late", with_packet(gone, Mark(run.identity, run.ticket))
