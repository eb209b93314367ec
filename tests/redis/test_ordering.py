"""In which order queues are tried, and how far ahead may be fetched."""

from __future__ import annotations

from collections import Counter

import pytest

from django_cogworker.parsers import parse_queues
from django_cogworker.worker.fetch.ordering import Ordering
from django_cogworker.worker.fetch.rate import MOST, Rate

TRIES = 6000


def test_a_queue_of_weight_two_comes_first_twice_as_often():
    """D30"""
    ordering = Ordering(parse_queues(["a", "a", "b"]), "weighted")
    firsts = Counter(ordering.next()[0] for _ in range(TRIES))
    assert firsts["a"] + firsts["b"] == TRIES
    assert firsts["a"] / TRIES == pytest.approx(2 / 3, abs=0.05)


def test_the_rest_follows_its_weights_too():
    ordering = Ordering(parse_queues({"a": 6, "b": 3, "c": 1}), "weighted")
    orders = Counter(tuple(ordering.next()) for _ in range(TRIES))
    assert all(sorted(each) == ["a", "b", "c"] for each in orders)
    first = Counter(each[0] for each in orders.elements())
    assert first["a"] / TRIES == pytest.approx(0.6, abs=0.05)
    assert first["c"] / TRIES == pytest.approx(0.1, abs=0.03)
    after_a = Counter(each[1] for each in orders.elements() if each[0] == "a")
    assert after_a["b"] / after_a.total() == pytest.approx(0.75, abs=0.05)


def test_strict_order_is_the_order_as_listed():
    ordering = Ordering(parse_queues({"a": 1, "b": 900}), "strict")
    assert all(ordering.next() == ["a", "b"] for _ in range(50))


def test_nothing_is_fetched_ahead_of_slow_jobs():
    rate = Rate()
    assert rate.allowance() == 0
    rate._since -= 1.0
    rate.finished(20)  # twenty a second
    assert rate.allowance() == 0


def test_what_is_taken_within_milliseconds_may_be_fetched_ahead_within_limits():
    rate = Rate()
    rate._since -= 0.1
    rate.finished(1000)
    assert 30 <= rate.allowance() <= 60
    rate.misjudged()
    assert rate.allowance() == 0
    rate._since -= 0.1
    rate.finished(10_000_000)
    assert rate.allowance() == MOST
