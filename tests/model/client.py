"""The client: `client/transport.py` and `client/lanes.py`. It pushes one job after the other.

A try without an answer is repeated under the same lane and number, or the push is given up
(`PushError`). After such doubt the lane is thrown away: a packet of it may still be under way.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import scripts
from tests.model.changes import spend, with_job, with_packet
from tests.model.rules import Rules
from tests.model.states import Client, Push, State, Step


def steps(state: State, rules: Rules) -> Iterator[Step]:
    client = state.client
    if client.phase == "idle":
        if client.job < len(state.jobs):
            number = client.number + 1 if rules.pushes_numbered else 1
            sent = client._replace(number=number, phase="sent")
            yield Step(f"the client pushes job {client.job}", state._replace(client=sent))
        return
    packet = Push(client.lane, client.number, client.job)
    if client.phase == "sent":
        after = scripts.push(state, packet, rules)
        answered = client._replace(phase="answered")
        yield Step(f"Redis takes the push of job {client.job}", after._replace(client=answered))
    else:
        job = state.jobs[client.job]._replace(confirmed=True)
        after = with_job(state, client.job, job)._replace(client=_next(client, rules))
        yield Step(f"the client hears that job {client.job} is there", after)
    if state.faults.client_losses:
        yield from _without_answer(state, packet, rules)


def _next(client: Client, rules: Rules) -> Client:
    if client.doubt and rules.lanes_thrown_away:
        return Client(client.job + 1, client.lane + 1)
    return Client(client.job + 1, client.lane, client.number)


def _without_answer(state: State, packet: Push, rules: Rules) -> Iterator[Step]:
    client = state.client._replace(doubt=True)
    state = spend(state, "client_losses")
    again = client._replace(phase="sent")
    outcomes = [("the reply to the push is lost", state)]
    if client.phase == "sent":
        late = with_packet(state, packet)
        outcomes = [("the push is lost", state), ("the push is late", late)]
    for what, after in outcomes:
        yield Step(f"{what}; the client repeats it", after._replace(client=again), fault=True)
        given_up = after._replace(client=_next(client, rules))
        yield Step(f"{what}; the client gives up", given_up, fault=True)
