"""Small changes of states, that several steps have in common."""

from __future__ import annotations

from tests.model.states import Identity, Job, Packet, State, Worker


def with_identity(state: State, place: int, identity: Identity) -> State:
    all_of_them = state.redis.identities
    changed = (*all_of_them[:place], identity, *all_of_them[place + 1 :])
    return state._replace(redis=state.redis._replace(identities=changed))


def with_job(state: State, place: int, job: Job) -> State:
    return state._replace(jobs=(*state.jobs[:place], job, *state.jobs[place + 1 :]))


def with_worker(state: State, place: int, worker: Worker) -> State:
    return state._replace(workers=(*state.workers[:place], worker, *state.workers[place + 1 :]))


def with_packet(state: State, packet: Packet) -> State:
    """In an order of its own, so that it does not matter which was sent first."""
    return state._replace(packets=tuple(sorted((*state.packets, packet), key=repr)))


def without_packet(state: State, packet: Packet) -> State:
    at = state.packets.index(packet)
    return state._replace(packets=(*state.packets[:at], *state.packets[at + 1 :]))


def spend(state: State, fault: str) -> State:
    left = state.faults
    return state._replace(faults=left._replace(**{fault: getattr(left, fault) - 1}))


def broke(state: State, rule: str) -> State:
    """Remember the first rule that was broken."""
    return state if state.wrong else state._replace(wrong=rule)


def lives(state: State, identity: int) -> bool:
    """Whether some process goes by that identity now."""
    return any(each.life != "gone" and each.identity == identity for each in state.workers)
