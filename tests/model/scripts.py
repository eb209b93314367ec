"""The Redis side: each script of `django_cogworker/store/scripts/` as one atomic function.

Each has the checks of its script in the same order. What the model has no need for is left out:
priorities, tokens, pauses, counters, effects, keys of the wrong type.
"""

from __future__ import annotations

from tests.model.changes import broke, with_identity, with_job
from tests.model.invariants import (
    GRANTED_TO_THE_GONE,
    SETTLED_UNSTARTED,
)
from tests.model.rules import Rules
from tests.model.states import (
    Entry,
    Exchange,
    Graduate,
    Identity,
    Item,
    Leave,
    Mark,
    Orphan,
    Push,
    Recover,
    Refile,
    Reply,
    State,
    Waiting,
)


def push(state: State, packet: Push, rules: Rules) -> State:
    """push.lua. An equal number on the lane is a repeat: it gets the kept result, nothing more."""
    lanes = state.redis.lanes
    lanes += (0,) * (packet.lane + 1 - len(lanes))
    if rules.lane_memory and lanes[packet.lane] == packet.number:
        return state
    lanes = (*lanes[: packet.lane], packet.number, *lanes[packet.lane + 1 :])
    redis = state.redis._replace(queue=(*state.redis.queue, packet.job), lanes=lanes)
    job = state.jobs[packet.job]
    return with_job(state._replace(redis=redis), packet.job, job._replace(written=job.written + 1))


def exchange(state: State, packet: Exchange, rules: Rules) -> tuple[State, Reply]:
    """exchange.lua: tombstone, plain successes, other ends, fetch."""
    if rules.tombstones and state.redis.identities[packet.identity].tombstone:
        return state, Reply(True, packet.first)
    for item in packet.items:
        state = _settle(state, packet.identity, item, rules)
    own = state.redis.identities[packet.identity]
    if packet.wanted and packet.first < own.granted and rules.repeats_honoured:
        # A repeat, or a late packet was quicker: what these tickets hold, and nothing else.
        last = min(packet.first + packet.wanted, own.granted)
        tickets = range(packet.first, last)
        jobs = tuple((each.ticket, each.job) for each in own.entries if each.ticket in tickets)
        return state, Reply(False, last, jobs)
    if not (packet.wanted and packet.looks):
        return state, Reply(False, packet.first)
    taken = state.redis.queue[: packet.wanted]
    entries = [Entry(packet.first + place, job) for place, job in enumerate(taken)]
    state = _grant(state, packet.identity, entries, rules)
    jobs = tuple((each.ticket, each.job) for each in entries)
    return state, Reply(False, packet.first + len(entries), jobs)


def _grant(state: State, place: int, entries: list[Entry], rules: Rules) -> State:
    if not entries:
        return state
    own, redis = state.redis.identities[place], state.redis
    if own.tombstone:
        state = broke(state, GRANTED_TO_THE_GONE)
    redis = redis._replace(queue=redis.queue[len(entries) :])
    own = own._replace(granted=entries[-1].ticket + 1)
    if rules.fetch_in_one_step:
        own = with_entries(own, entries)
    else:
        redis = redis._replace(limbo=(*redis.limbo, *((place, each) for each in entries)))
    return with_identity(state._replace(redis=redis), place, own)


def with_entries(own: Identity, entries: list[Entry]) -> Identity:
    """HSET: a field that is there already gets the new value."""
    fields = {each.ticket: each for each in own.entries} | {each.ticket: each for each in entries}
    return own._replace(entries=tuple(sorted(fields.values())))


def _settle(state: State, place: int, item: Item, rules: Rules) -> State:
    """One end. A ticket that is not held changes nothing."""
    own = state.redis.identities[place]
    entry = next((each for each in own.entries if each.ticket == item.ticket), None)
    if entry is None:
        return state if rules.settle_by_ticket or item.end == "ack" else _put(state, place, item)
    if item.end in ("ack", "retry") and not entry.started:
        state = broke(state, SETTLED_UNSTARTED)
    kept = tuple(each for each in own.entries if each is not entry)
    state = with_identity(state, place, own._replace(entries=kept))
    return _put(state, place, item._replace(job=entry.job))


def _put(state: State, place: int, item: Item) -> State:
    """Write a job to where it goes."""
    redis, number = state.redis, item.job
    if item.end == "ack":
        job = state.jobs[number]
        return with_job(state, number, job._replace(done=job.done + 1))
    if item.end == "front":
        return state._replace(redis=redis._replace(queue=(number, *redis.queue)))
    if item.end == "dead":
        return state._replace(redis=redis._replace(dead=tuple(sorted((*redis.dead, number)))))
    if item.end == "retry":
        member = Waiting(number, place, item.ticket)
        waiting = tuple(sorted({*redis.waiting, member}))
        return state._replace(redis=redis._replace(waiting=waiting))
    return state  # dropped: somebody else has it


def mark_started(state: State, packet: Mark, rules: Rules) -> tuple[State, bool]:
    """mark_started.lua: only while the ticket is held."""
    own = state.redis.identities[packet.identity]
    entries = tuple(
        each._replace(marked=True) if each.ticket == packet.ticket else each for each in own.entries
    )
    held = any(each.ticket == packet.ticket for each in entries)
    state = with_identity(state, packet.identity, own._replace(entries=entries))
    return state, held or not rules.mark_asks


def graduate(state: State, packet: Graduate, rules: Rules) -> State:
    """graduate.lua: who finds the member gone was not the first."""
    redis, member = state.redis, packet.member
    if rules.graduate_asks and member not in redis.waiting:
        return state
    waiting = tuple(each for each in redis.waiting if each != member)
    queue = (*redis.queue, member.job)
    return state._replace(redis=redis._replace(queue=queue, waiting=waiting))


def refile(state: State, packet: Refile) -> tuple[State, bool]:
    """refile.lua: whoever finds the job gone was not the first."""
    redis, member = state.redis, packet.member
    if packet.source == "waiting":
        there = member in redis.waiting
        redis = redis._replace(waiting=tuple(each for each in redis.waiting if each != member))
    else:
        jobs = list(redis.queue if packet.source == "queue" else redis.dead)
        there = member.job in jobs
        if there:
            jobs.remove(member.job)
        kept = tuple(jobs)
        redis = (
            redis._replace(queue=kept) if packet.source == "queue" else redis._replace(dead=kept)
        )
    if not there:
        return state, False
    if packet.to == "queue":
        redis = redis._replace(queue=(*redis.queue, member.job))
    elif packet.to == "dead":
        redis = redis._replace(dead=tuple(sorted((*redis.dead, member.job))))
    elif packet.to == "retry":
        redis = redis._replace(waiting=tuple(sorted({*redis.waiting, member})))
    return state._replace(redis=redis), True


def beat(state: State, place: int) -> State:
    """beat.lua: one that is gone is not brought back."""
    own = state.redis.identities[place]
    if own.tombstone:
        return state
    return with_identity(state, place, own._replace(registered=True))


def leave(state: State, packet: Leave, rules: Rules) -> State:
    """leave.lua: while the hash holds jobs the registration stays, else a tombstone is left."""
    own = state.redis.identities[packet.identity]
    if own.entries:
        if rules.leave_keeps_holders:
            return state
        own = own._replace(granted=0, registered=False)
    else:
        own = own._replace(granted=0, registered=False, tombstone="left")
    return with_identity(state, packet.identity, own)


def recover(state: State, packet: Recover, rules: Rules, *, dead: bool) -> State:
    """recover.lua. `dead`: what the judgement comes to, where there is no tombstone yet."""
    own = state.redis.identities[packet.identity]
    if not own.tombstone and not dead and rules.recover_in_one_step:
        return state
    if rules.recover_in_one_step:
        own = own._replace(tombstone="buried")
        state = with_identity(state, packet.identity, own)
    for orphan in packet.orphans:
        state = _move(state, packet.identity, orphan, rules)
    own = state.redis.identities[packet.identity]
    if not own.entries:
        own = own._replace(granted=0, registered=False, tombstone="buried")
    return with_identity(state, packet.identity, own)


def _move(state: State, place: int, orphan: Orphan, rules: Rules) -> State:
    own = state.redis.identities[place]
    entry = next((each for each in own.entries if each.ticket == orphan.ticket), None)
    if rules.recover_in_one_step:
        if entry is None:
            return state
        if rules.recover_compares_mark and entry.marked != orphan.marked:
            return state
    kept = tuple(each for each in own.entries if each is not entry)
    state = with_identity(state, place, own._replace(entries=kept))
    job = state.jobs[orphan.job]
    state = with_job(state, orphan.job, job._replace(orphaned=job.orphaned + 1))
    return _put(state, place, Item(orphan.ticket, orphan.job, orphan.fate))
