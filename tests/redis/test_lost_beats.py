"""The beats of all workers are lost (somebody's value in their place was taken away): nobody is dead for that."""

from __future__ import annotations

from django_cogworker.store.store import get_store
from tests.redis.lost import LOST, Fleet


def test_a_worker_whose_beat_was_lost_lives_by_its_presence(redis_url):
    fleet = Fleet(get_store())
    fleet.silent(LOST, "a", ago=1)
    fleet.client.delete(fleet.keys.beats)
    assert not fleet.recover().dead
    assert fleet.held() == 1


def test_a_worker_without_beat_and_with_an_old_presence_is_dead(redis_url):
    fleet = Fleet(get_store())
    fleet.silent(LOST, "a", ago=100)
    fleet.client.delete(fleet.keys.beats)
    assert fleet.recover().dead


def test_a_worker_without_beat_and_presence_is_dead(redis_url):
    fleet = Fleet(get_store())
    fleet.has_lived(10_000)
    fleet.hold(LOST, "a")
    assert fleet.recover().dead
