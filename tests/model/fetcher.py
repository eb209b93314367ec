"""The fetcher of a worker: `worker/fetch/`. It has one exchange under way at a time.

A call without an answer is made anew, with the same first ticket; what it had asked for is
remembered as uncertain. An answer under a tombstone makes the worker start over under a new
identity.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import scripts
from tests.model.changes import spend, with_packet, with_worker
from tests.model.rules import Rules, Size
from tests.model.states import End, Exchange, Held, Identity, Item, Reply, State, Step, Worker


def steps(state: State, place: int, rules: Rules, size: Size) -> Iterator[Step]:
    worker = state.workers[place]
    name = f"worker {place}"
    if not worker.present:
        after = scripts.beat(state, worker.identity)
        present = worker._replace(present=True)
        yield Step(f"{name} beats as {worker.identity}", with_worker(after, place, present))
    if worker.asked is None:
        packet = request(worker, size)
        if packet is not None:
            sent = with_worker(state, place, worker._replace(asked=packet))
            yield Step(f"{name} sends {told(packet)}", sent)
        return
    if worker.reply is None:
        after, reply = scripts.exchange(state, worker.asked, rules)
        answered = with_worker(after, place, worker._replace(reply=reply))
        yield Step(f"Redis does the exchange of {name}: {reply_told(reply)}", answered)
    else:
        yield Step(f"{name} hears {reply_told(worker.reply)}", heard(state, place))
    if state.faults.losses:
        yield from _without_answer(state, place)


def request(worker: Worker, size: Size) -> Exchange | None:
    """What it would send now: ends to settle, room to fill, or what lost replies had brought."""
    items = tuple(Item(each.ticket, each.job, each.end) for each in worker.held if each.end)
    wanted = 0
    if worker.life == "up" and worker.present:
        unfinished = sum(not each.end for each in worker.held)
        wanted = max(0, size.room - unfinished - strays(worker))
    looks = wanted > 0
    if not looks:
        wanted = worker.uncertain
    if not items and not wanted:
        return None
    return Exchange(worker.identity, worker.first, wanted, looks, items)


def strays(worker: Worker) -> int:
    """Processors that are at a job which is not ours any more: they are not free."""
    return sum(each.identity != worker.identity for each in worker.runs)


def heard(state: State, place: int) -> State:
    """The answer has come."""
    worker = state.workers[place]
    request, reply = worker.asked, worker.reply
    assert request is not None
    assert reply is not None
    if reply.buried:
        return _start_over(state, place)
    settled = {each.ticket for each in request.items}
    held = [each for each in worker.held if each.ticket not in settled]
    known = {each.ticket for each in held}
    # A worker that stops gives back at once what comes.
    end: End = "front" if worker.life == "stopping" else ""
    held += [Held(ticket, job, False, end) for ticket, job in reply.jobs if ticket not in known]
    worker = worker._replace(held=tuple(held), asked=None, reply=None)
    if request.wanted:
        uncertain = max(0, worker.uncertain - request.wanted)
        worker = worker._replace(first=max(worker.first, reply.first), uncertain=uncertain)
    return with_worker(state, place, worker)


def _start_over(state: State, place: int) -> State:
    """Under a new identity, which has to beat first. What it held belongs to others; what a
    processor runs it may run to its end, which changes nothing.
    """
    worker, redis = state.workers[place], state.redis
    new = len(redis.identities)
    state = state._replace(redis=redis._replace(identities=(*redis.identities, Identity())))
    runs = tuple(each for each in worker.runs if each.phase != "running")
    fresh = Worker(worker.life, new, False, worker.first, runs=runs)
    return with_worker(state, place, fresh)


def _without_answer(state: State, place: int) -> Iterator[Step]:
    name = f"worker {place}"
    worker = state.workers[place]
    assert worker.asked is not None
    unsure = max(worker.uncertain, worker.asked.wanted)
    waits_no_more = worker._replace(asked=None, reply=None, uncertain=unsure)
    after = with_worker(spend(state, "losses"), place, waits_no_more)
    if worker.reply is not None:
        yield Step(f"the reply to {name} is lost", after, fault=True)
        return
    yield Step(f"the request of {name} is lost", after, fault=True)
    yield Step(f"the request of {name} is late", with_packet(after, worker.asked), fault=True)


def told(packet: Exchange) -> str:
    """The request in words."""
    parts = [f"settle {each.ticket}: {each.end}" for each in packet.items]
    if packet.wanted:
        parts.append(f"{'fetch' if packet.looks else 'learn'} {packet.wanted} from {packet.first}")
    return f"an exchange as {packet.identity} ({', '.join(parts)})"


def reply_told(reply: Reply) -> str:
    if reply.buried:
        return "'buried'"
    if not reply.jobs:
        return "no jobs"
    return ", ".join(f"job {job} as ticket {ticket}" for ticket, job in reply.jobs)
