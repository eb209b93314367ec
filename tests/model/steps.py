"""All steps of a state, and the state that everything begins with."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import client, network, worker
from tests.model.rules import Rules, Size
from tests.model.states import Client, Faults, Identity, Job, Redis, State, Step, Worker


def steps(state: State, rules: Rules, size: Size) -> Iterator[Step]:
    yield from client.steps(state, rules)
    for place in range(len(state.workers)):
        yield from worker.steps(state, place, rules, size)
    yield from network.steps(state, rules, size)


def beginning(size: Size) -> State:
    """Workers that have beaten, and some jobs that lie on the queue."""
    jobs = tuple(
        Job(written=1, confirmed=True) if number < size.pushed else Job()
        for number in range(size.jobs)
    )
    identities = tuple(Identity(registered=True) for _ in range(size.workers))
    return State(
        redis=Redis(tuple(range(size.pushed)), (), (), (), identities),
        client=Client(size.pushed),
        workers=tuple(Worker(identity=place) for place in range(size.workers)),
        packets=(),
        jobs=jobs,
        faults=Faults(
            size.crashes,
            size.losses,
            size.client_losses,
            size.verdicts,
            size.failures,
            size.stops,
            size.returns,
        ),
    )
