"""What must be true, in every state that can be reached.

A job that Redis has accepted is in exactly one durable place (its queue, a set, the hash of one
worker) or it is done. The rules about steps (who may start, settle or be granted a job) are judged
where the step is taken, and leave a word in `State.wrong`.
"""

from __future__ import annotations

from tests.model.states import State

LOST = "a job is in no durable place, and it is not done"
DOUBLED = "a job is in two places, or in one though it is done"
PUSHED_TWICE = "a push was carried out twice"
NOT_WRITTEN = "a push was confirmed and the job is not there"
STARTED_AGAIN = "a job was started twice in one stay with a worker"
STARTED_BY_A_STRANGER = "a job was started by a worker that did not hold it, nor was taken for dead"
SETTLED_UNSTARTED = "an end was settled for a job that its holder had not run"
GRANTED_TO_THE_GONE = "a job was granted to a worker that has left or was buried"
MORE_THAN_ONCE = "an at-most-once job was started twice"
STRANDED = "a job can never come to its end any more, though nothing further fails"


def broken(state: State) -> str:
    """The invariant that does not hold in this state, or ''."""
    if state.wrong:
        return state.wrong
    redis = state.redis
    places = [*redis.queue, *redis.dead]
    places += [each.job for each in redis.waiting]
    places += [each.job for identity in redis.identities for each in identity.entries]
    places += [entry.job for _, entry in redis.limbo]
    for number, job in enumerate(state.jobs):
        if job.written > 1:
            return PUSHED_TWICE
        if job.confirmed and not job.written:
            return NOT_WRITTEN
        there = places.count(number) + job.done
        if there < job.written:
            return LOST
        if there > job.written:
            return DOUBLED
    return ""


def ended(state: State) -> bool:
    """Whether everything has come to its end: pushed, and done or dead."""
    dead = state.redis.dead
    return state.client.job == len(state.jobs) and all(
        not job.written or job.done or number in dead for number, job in enumerate(state.jobs)
    )
