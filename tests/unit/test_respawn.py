"""When a supervisor fills an empty place again. The clock is the test's."""

from __future__ import annotations

from django_cogworker.worker.respawn import Respawn


def test_quick_crashes_wait_longer_and_longer():
    """K160"""
    slot = Respawn()
    assert [slot.crashed(0, 1) for _ in range(9)] == [0, 1, 2, 4, 8, 16, 32, 60, 60]


def test_the_place_stays_empty_until_the_wait_is_over():
    """K161"""
    slot = Respawn()
    slot.crashed(100, 1)
    assert slot.is_due(100)
    slot.crashed(100, 1)
    assert not slot.is_due(100.5)
    assert slot.is_due(101)


def test_a_long_life_is_followed_at_once_and_ends_the_row():
    """K162"""
    slot = Respawn()
    for _ in range(5):
        slot.crashed(0, 1)
    assert slot.crashed(0, 30) == 0
    assert [slot.crashed(0, 1), slot.crashed(0, 1)] == [0, 1]


def test_a_wanted_end_is_followed_at_once():
    slot = Respawn()
    for _ in range(5):
        slot.crashed(0, 1)
    slot.replaced(50)
    assert slot.is_due(50)
