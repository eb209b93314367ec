"""What happens outside the conversations: recoveries, moves of due jobs, packets that come late.

A recovery (`worker/recovery.py`) and a move of due jobs (`worker/scheduler.py`) read first and act
with a script later. Who reads keeps nothing in mind but what it sends; so from the reading on they
are packets, and whether their sender dies, gives up or is quick makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model import scripts
from tests.model.changes import lives, spend, with_packet, without_packet
from tests.model.rules import Rules, Size
from tests.model.states import (
    Exchange,
    Fate,
    Graduate,
    Mark,
    Orphan,
    Packet,
    Push,
    Recover,
    State,
    Step,
)


def steps(state: State, rules: Rules, size: Size) -> Iterator[Step]:
    yield from _surveys(state, rules, size)
    for member in state.redis.waiting:
        move = Graduate(member)
        if state.packets.count(move) < size.twins:
            yield Step(f"a scheduler sees that job {member.job} is due", with_packet(state, move))
    for place, entry in state.redis.limbo:
        yield Step(f"what was fetched as ticket {entry.ticket} is written", _written(state, place))
    for packet in dict.fromkeys(state.packets):
        yield from _arrives(without_packet(state, packet), packet, rules)


def _surveys(state: State, rules: Rules, size: Size) -> Iterator[Step]:
    """survey.lua, then what the recoverer reads and decides (`worker/orphans.py`). Named are those
    that are registered or hold a number in `holders`; silence can make a living one look dead.
    """
    for place, own in enumerate(state.redis.identities):
        alive = lives(state, place)
        if not (own.registered or own.granted) or (
            alive and not _may_be_misjudged(state, place, size)
        ):
            continue
        if not any(each.life != "gone" and each.identity != place for each in state.workers):
            continue
        under_way = [
            each for each in state.packets if isinstance(each, Recover) and each.identity == place
        ]
        if len(under_way) >= size.twins:
            continue
        after = state
        if not rules.recover_in_one_step and alive and not own.tombstone:
            after = spend(state, "verdicts")  # judged here, acted upon later
        packet = Recover(place, tuple(_orphans(state, place, size)))
        held = ", ".join(f"job {each.job}: {each.fate}" for each in packet.orphans)
        what = f"a recoverer reads what {place} holds ({held or 'nothing'})"
        yield Step(what, with_packet(after, packet), fault=alive)


def _may_be_misjudged(state: State, place: int, size: Size) -> bool:
    if state.redis.identities[place].tombstone:
        return True
    hit = size.all_may_fail or state.workers[0].identity == place
    return hit and state.faults.verdicts > 0


def _orphans(state: State, place: int, size: Size) -> Iterator[Orphan]:
    for entry in state.redis.identities[place].entries:
        fate: Fate
        if size.at_most_once:
            fate = "dead" if entry.marked else "front"
        else:
            fate = "retry" if state.jobs[entry.job].orphaned else "front"
        yield Orphan(entry.ticket, entry.job, entry.marked, fate)


def _written(state: State, place: int) -> State:
    """The second step of a fetch that has two."""
    entries = [entry for owner, entry in state.redis.limbo if owner == place]
    limbo = tuple(each for each in state.redis.limbo if each[0] != place)
    identities = list(state.redis.identities)
    identities[place] = scripts.with_entries(identities[place], entries)
    redis = state.redis._replace(identities=tuple(identities), limbo=limbo)
    return state._replace(redis=redis)


def _arrives(state: State, packet: Packet, rules: Rules) -> Iterator[Step]:
    if isinstance(packet, Recover):
        yield from _recover_arrives(state, packet, rules)
    elif isinstance(packet, Graduate):
        after = scripts.graduate(state, packet, rules)
        yield Step(f"job {packet.member.job} is moved to its queue, if it waits still", after)
    elif isinstance(packet, Push):
        after = scripts.push(state, packet, rules)
        yield Step(f"the late push of job {packet.job} arrives", after)
    elif isinstance(packet, Exchange):
        after, _ = scripts.exchange(state, packet, rules)
        yield Step(f"the late exchange of {packet.identity} arrives", after)
    elif isinstance(packet, Mark):
        after, _ = scripts.mark_started(state, packet, rules)
        yield Step(f"the late mark of {packet.identity} arrives", after)
    else:
        yield Step(
            f"the late word of {packet.identity} arrives", scripts.leave(state, packet, rules)
        )


def _recover_arrives(state: State, packet: Recover, rules: Rules) -> Iterator[Step]:
    place = packet.identity
    dead = not lives(state, place)
    if dead or state.redis.identities[place].tombstone or not rules.recover_in_one_step:
        after = scripts.recover(state, packet, rules, dead=True)
        yield Step(f"{place} is recovered", after)
        return
    after = scripts.recover(state, packet, rules, dead=False)
    yield Step(f"{place} is found alive", after)
    if state.faults.verdicts:
        spent = spend(state, "verdicts")
        after = scripts.recover(spent, packet, rules, dead=True)
        yield Step(f"{place} is taken for dead though it lives, and recovered", after, fault=True)
