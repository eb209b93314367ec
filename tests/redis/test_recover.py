"""The script that judges a worker dead and brings its jobs to their places, in one step."""

from __future__ import annotations

import threading

import pytest

from django_cogworker.store.store import get_store
from django_cogworker.store.values import Beat, Effect, Held, Recovered
from tests.redis.lost import LOST, Fleet, payload

ALIVE, DEAD = False, True


@pytest.fixture
def fleet(redis_url: str) -> Fleet:
    return Fleet(get_store())


def held(ticket: int, *, marked: bool = False) -> Held:
    return Held(ticket, "default", b"", marked)


def front(ticket: int, name: str, queue: str = "default") -> Recovered:
    return Recovered(held(ticket), "front", payload(name), queue)


def buried(ticket: int, name: str, *effects: Effect) -> Recovered:
    return Recovered(held(ticket), "dead", payload(name), "default", effects=effects)


# -- who is dead


@pytest.mark.parametrize(
    ("ago", "verdict"),
    [(10, ALIVE), (50, ALIVE), (58, ALIVE), (62, DEAD), (90, DEAD)],
)
def test_g62_g66_silence_counts_from_the_threshold_on(fleet, ago, verdict):
    """G62, G66: by Redis's clock, whatever those of the hosts say."""
    fleet.silent(LOST, "a", ago=ago)
    assert fleet.recover(front(1, "a")).dead is verdict
    assert fleet.queued() == (["a"] if verdict else [])


def test_g64_a_worker_found_alive_keeps_all_it_has(fleet):
    """G64: its jobs, its registrations, its beat, and no tombstone."""
    fleet.silent(LOST, "a", ago=10)
    stamp = fleet.client.zscore(fleet.keys.beats, LOST)
    reply = fleet.recover(front(1, "a"))
    assert (reply.dead, reply.verdicts) == (False, [])
    assert fleet.client.zscore(fleet.keys.beats, LOST) == stamp
    assert fleet.knows(LOST) == {"processes", "beats", "holders", "presence"}
    assert fleet.held() == 1
    assert not fleet.client.exists(fleet.keys.tombstone(LOST))


@pytest.mark.parametrize("lived", [5, 58])
def test_a_young_fleet_takes_nobody_for_dead(fleet, lived):
    """After an outage, in which nobody could beat, the silence of one proves nothing yet."""
    fleet.silent(LOST, "a", ago=5000)
    fleet.has_lived(lived)
    assert fleet.recover(front(1, "a")).dead is ALIVE
    assert fleet.queued() == []


def test_one_whose_process_is_gone_is_dead_without_any_silence(fleet):
    fleet.silent(LOST, "a", ago=0)
    fleet.has_lived(0)
    assert fleet.recover(front(1, "a"), gone=True).dead is DEAD
    assert fleet.queued() == ["a"]


def test_g61_pr2_one_whose_beat_is_lost_is_judged_by_the_age_of_the_fleet(fleet):
    """G61, PR-2: who ever fetched stands among the holders, whatever else was pruned."""
    fleet.hold(LOST, "a")
    fleet.has_lived(50)
    assert fleet.recover(front(1, "a")).dead is ALIVE
    fleet.has_lived(70)
    survey = fleet.store.recovering.survey("", 60, 50, full=True)
    assert [identity for identity, _ in survey.silent] == [LOST]
    assert fleet.recover(front(1, "a")).dead is DEAD
    assert fleet.knows(LOST) == set()


def beat_of(fleet: Fleet, identity: str) -> None:
    fleet.store.beat(Beat(identity, "{}", 0, False, ["default"]))


@pytest.mark.parametrize("stamp", ["text", None, "list", "future"])
def test_g65_an_unusable_age_of_the_fleet_is_begun_anew(fleet, stamp):
    """G65: not a number, lost, of the wrong type: it must not keep the dead unrecovered for ever."""
    beat_of(fleet, "living:1:x")
    key = fleet.keys.fleet_since
    fleet.client.delete(key)
    if stamp == "list":
        fleet.client.rpush(key, "x")
    elif stamp is not None:
        fleet.client.set(key, fleet.now() + 9_999 if stamp == "future" else stamp)
    beat_of(fleet, "living:1:x")
    assert abs(float(fleet.client.get(key)) - fleet.now()) < 5


def test_a_good_age_of_the_fleet_is_left_alone(fleet):
    beat_of(fleet, "living:1:x")
    fleet.has_lived(1_000)
    before = fleet.client.get(fleet.keys.fleet_since)
    beat_of(fleet, "living:1:x")
    beat_of(fleet, "living:2:x")
    assert fleet.client.get(fleet.keys.fleet_since) == before


def test_nobody_is_silent_before_somebody_beats_again(fleet):
    """G64: after an outage the first one to ask may not have beaten yet; then all look silent."""
    fleet.silent(LOST, "a")
    fleet.client.delete(fleet.keys.fleet_beat)
    assert not fleet.recover(front(1, "a")).dead
    assert fleet.held() == 1
    fleet.client.set(fleet.keys.fleet_beat, 1)
    assert fleet.recover(front(1, "a")).dead


# -- what becomes of its jobs


def test_sk14_a_job_that_is_gone_is_not_brought_back(fleet):
    """SK-14: neither its payload nor its effects; another recoverer or a late end was quicker."""
    fleet.silent(LOST, "a", "b")
    effect = Effect("hincrby", "seen", ("n", 1))
    first = Recovered(held(1), "front", payload("a"), "default", effects=(effect,))
    assert fleet.recover(first, buried(2, "b", effect)).verdicts == [1, 1]
    again = fleet.recover(first, buried(2, "b", effect))
    assert (again.dead, list(again.verdicts), again.left) == (True, [0, 0], 0)
    assert fleet.queued() == ["a"]
    assert [each["jid"] for each in fleet.dead()] == ["b"]
    assert fleet.client.hget("seen", "n") == b"2"
    assert fleet.client.get(fleet.keys.failed) == b"1"


def test_many_recoverers_at_once_bring_each_job_back_once(fleet):
    names = [f"j{number}" for number in range(90)]
    fleet.silent(LOST, *names)
    orphans = [front(at, name) for at, name in enumerate(names, 1)]
    replies: list[int | str] = []

    def recover() -> None:
        replies.extend(fleet.recover(*orphans).verdicts)

    threads = [threading.Thread(target=recover) for _ in range(5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(replies, key=str) == [0] * 360 + [1] * 90
    assert sorted(fleet.queued()) == sorted(names)


def test_e52_a_broken_queue_keeps_its_own_job_and_no_other(fleet):
    """E52: the job stays where it is, and so does what tells that it is there."""
    fleet.silent(LOST, "bad", queue="bad")
    fleet.hold(LOST, "good")
    fleet.client.set(fleet.keys.queue("bad").jobs, "text")
    orphans = (front(1, "bad", "bad"), front(2, "good"))
    reply = fleet.recover(*orphans)
    assert "WRONGTYPE" in str(reply.verdicts[0])
    assert (reply.verdicts[1], reply.left) == (1, 1)
    assert fleet.queued() == ["good"]
    assert "holders" in fleet.knows(LOST)
    fleet.client.delete(fleet.keys.queue("bad").jobs)
    assert fleet.recover(orphans[0]).verdicts == [1]
    assert fleet.queued("bad") == ["bad"]
    assert fleet.knows(LOST) == set()


def test_what_began_or_failed_after_it_was_read_is_left_to_be_read_anew(fleet):
    """The recoverer decided for a job that had not begun. It may run at most once, and its worker lives."""
    fleet.silent(LOST, "a", "b", "c")
    workers = fleet.keys.workers(LOST)
    fleet.client.hset(workers, "!1", 1)
    fleet.client.hset(workers, "=2", b"dead 1\n" + payload("b"))
    reply = fleet.recover(front(1, "a"), front(2, "b"), front(3, "c"))
    assert (reply.dead, list(reply.verdicts), reply.left) == (True, [0, 0, 1], 4)
    assert fleet.queued() == ["c"]
    marked = Recovered(held(1, marked=True), "dead", payload("a"), "default")
    assert fleet.recover(marked).verdicts == [1]
    assert [each["jid"] for each in fleet.dead()] == ["a"]


@pytest.mark.parametrize("fate", ["schedule", "dead"])
def test_g69_g72_a_burial_is_one_step_or_none(fleet, fate):
    """G69, G72: no half-done entry that a later pass would have to complete."""
    fleet.silent(LOST, "a")
    key = getattr(fleet.keys, fate)
    fleet.client.set(key, "text")
    effect = Effect("hincrby", "seen", ("n", 1))
    orphan = Recovered(held(1), fate, payload("a"), "default", delay=5, effects=(effect,))
    assert "WRONGTYPE" in str(fleet.recover(orphan).verdicts[0])
    assert fleet.held() == 1
    assert fleet.client.exists(fleet.keys.failed, "seen") == 0
    fleet.client.delete(key)
    assert fleet.recover(orphan).verdicts == [1]
    assert [each["jid"] for each in fleet.members(key)] == ["a"]
    assert fleet.client.get(fleet.keys.failed) == (b"1" if fate == "dead" else None)


def test_g68_what_features_hold_for_a_job_is_freed_in_the_step_that_buries_it(fleet):
    """G68: a lock of its own; that of somebody else stays."""
    fleet.silent(LOST, "a")
    fleet.client.set("lock", "a")
    fleet.client.set("other", "b")
    effects = (
        Effect("delete_if_owner", "lock", ("a",)),
        Effect("delete_if_owner", "other", ("a",)),
    )
    assert fleet.recover(buried(1, "a", *effects)).verdicts == [1]
    assert fleet.client.exists("lock", "other") == 1
    assert fleet.client.get(fleet.keys.failed) == b"1"


def test_g73_counters_that_cannot_count_stop_no_burial(fleet):
    """G73: nor what comes with it."""
    fleet.silent(LOST, "a")
    fleet.client.rpush(fleet.keys.failed, "x")
    fleet.client.set("lock", "a")
    effect = Effect("delete_if_owner", "lock", ("a",))
    reply = fleet.recover(buried(1, "a", effect))
    assert (list(reply.verdicts), reply.left) == ([1], 0)
    assert [each["jid"] for each in fleet.dead()] == ["a"]
    assert not fleet.client.exists("lock")
    assert fleet.knows(LOST) == set()


def test_g85_two_jobs_with_the_same_payload_are_two(fleet):
    """G85: told apart by their tickets; the end of one is not that of the other."""
    fleet.silent(LOST, "twin")
    fleet.hold(LOST, "twin")
    assert fleet.held() == 2
    assert fleet.recover(front(1, "twin")).left == 1
    assert fleet.held() == 1
    assert fleet.recover(front(2, "twin")).left == 0
    assert fleet.queued() == ["twin", "twin"]


def test_the_first_judgement_binds(fleet):
    """Between two batches the dead one cannot come back and take or settle anything."""
    fleet.silent(LOST, "a", "b")
    assert fleet.recover(front(1, "a")).left == 1
    fleet.beat(LOST, ago=0)
    assert fleet.recover(front(2, "b")).dead is DEAD
    assert 0 < fleet.client.ttl(fleet.keys.tombstone(LOST)) <= 86_400


def test_registries_of_the_wrong_type_do_not_keep_jobs_from_coming_back(fleet):
    fleet.silent(LOST, "a")
    for key in ("members", "processes", "queues", "holders"):
        fleet.client.set(getattr(fleet.keys, key), "text")
    fleet.client.set(fleet.keys.queue("default").tokens, "text")
    reply = fleet.recover(front(1, "a"))
    assert (list(reply.verdicts), reply.left) == ([1], 0)
    assert fleet.queued() == ["a"]
