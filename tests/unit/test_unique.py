"""Unique jobs without Redis: options, keys, the test modes."""

from __future__ import annotations

from typing import Any

import pytest

from django_cogworker import Job
from django_cogworker.client import push
from django_cogworker.exceptions import (
    DuplicateJob,
    InvalidOption,
    InvalidPayload,
)
from django_cogworker.features.unique.digest import key_of
from django_cogworker.testing import clear_all, fake, inline

done: list[Any] = []


@pytest.fixture(autouse=True)
def _start_with_nothing_done():
    done.clear()


class Once(Job, unique=True):
    def perform(self, name: str, *rest: Any, mark: str = "", **more: Any) -> None:
        done.append(name)
        if name == "again":
            done.append(Once.perform_async(name))


class UntilStart(Job, unique="until_executing"):
    def perform(self, left: int, again: bool = False) -> None:
        done.append(left)
        if again and len(done) < 3:
            done.append(UntilStart.perform_async(left, again) is not None)


class Newest(Job, unique=True, unique_on=["name"], on_conflict="replace"):
    def perform(self, name: str, mark: str) -> None:
        done.append(mark)


class Broken(Job, unique=True):
    def perform(self) -> None:
        raise ZeroDivisionError


class Base(Job, unique="until_executing"):
    """A base whose options are inherited."""


class NotAtAll(Base, unique=None):
    def perform(self, name: str) -> None: ...


# -- options


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("unique", "until_execution", "'until_executing'"),
        ("unique", 1, "'until_executed'"),
        ("unique_on", "name", "a list of names"),
        ("unique_on", [1], "a list of names"),
        ("unique_ttl", 0, "a positive number"),
        ("unique_ttl", "1", "a positive number"),
        ("on_conflict", "wait", "'skip', 'raise' or 'replace'"),
        ("on_conflict", None, "'skip', 'raise' or 'replace'"),
    ],
)
def test_a_wrong_option_is_refused_with_what_is_allowed(option, value, allowed):
    with pytest.raises(InvalidOption, match=allowed):
        Once.set(**{option: value})


def test_the_payload_says_how_the_job_is_unique_and_that_of_other_jobs_says_nothing():
    with fake() as jobs:
        Once.set(unique_ttl=90, on_conflict="raise").perform_async("a")
        NotAtAll.perform_async("a")
        NotAtAll.set(unique_on=["name"], unique_ttl=3).perform_async("a")
        one, *others = jobs.jobs()
    assert one["unique"] == "until_executed"
    assert len(one["unique_key"]) == 40
    assert (one["unique_ttl"], one["on_conflict"]) == (90.0, "raise")
    assert "unique_on" not in one
    for each in others:
        assert not {"unique", "unique_on", "unique_key", "unique_ttl", "on_conflict"} & set(each)


def test_a_parameter_that_does_not_exist_is_named():
    with fake(), pytest.raises(InvalidOption, match=r"'nme', which is no argument.*name, mark"):
        Once.set(unique_on=["nme"]).perform_async("a")


def test_a_function_whose_answer_cannot_be_part_of_a_key_is_named():
    with fake(), pytest.raises(InvalidOption, match="unique_on answered"):
        Once.set(unique_on=lambda *args: object()).perform_async("a")


@pytest.mark.parametrize(
    "fields",
    [
        {"unique": "sometimes"},
        {"unique": True, "unique_ttl": -1},
        {"unique": True, "on_conflict": "no"},
        {"unique": True, "unique_key": "a b"},
        {"unique": True, "unique_key": ""},
        {"unique": True, "unique_on": "name"},
    ],
)
def test_a_hand_made_payload_is_checked(fields):
    with fake(), pytest.raises(InvalidPayload, match="unique|on_conflict"):
        push({"class": "elsewhere.Job", "args": [1], **fields})


# -- keys


def key(job: Any, *args: Any, unique_on: Any = None, **kwargs: Any) -> str:
    payload = job._definition.payload(args, kwargs)
    return key_of(payload, unique_on, payload["unique"])


def test_calls_that_mean_the_same_have_the_same_key():
    same = {
        key(Once, "a"),
        key(Once, name="a"),
        key(Once, "a", mark=""),
    }
    assert len(same) == 1
    assert key(Once, {"x", "y", "z"}) == key(Once, {"z", "x", "y"})
    assert key(Once, [{"b": 1, "a": 2}]) == key(Once, [{"a": 2, "b": 1}])


def test_calls_that_differ_have_different_keys():
    calls = [
        key(Once, "a"),
        key(Once, "b"),
        key(Once, 1),
        key(Once, "1"),
        key(Once, (1,)),
        key(Once, [1]),
        key(Once, "a", "b"),
        key(Once, "a", b="b"),
        key(Once, "a", mark="b"),
        key(UntilStart, 1),
    ]
    assert len(set(calls)) == len(calls)


def test_named_arguments_may_be_keywords_that_have_no_parameter():
    one = key(Once, "a", unique_on=["shop"], shop=3, other=1)
    assert one == key(Once, "b", unique_on=["shop"], shop=3)
    assert one != key(Once, "a", unique_on=["shop"], shop=4)


# -- test modes


def test_fake_mode_refuses_duplicates_like_redis_and_begins_without_locks():
    """12.3"""
    for _ in range(2):
        with fake() as jobs:
            assert Once.perform_async("a")
            assert Once.perform_async("a") is None
            assert Once.perform_async("b")
            with pytest.raises(DuplicateJob):
                Once.set(on_conflict="raise").perform_async("a")
            assert len(jobs.jobs()) == 2
            assert Once.drain() == 2
            assert Once.perform_async("a")
            clear_all()
            assert Once.perform_async("a")
            Once.clear()
            assert Once.perform_async("a")


def test_fake_mode_holds_the_lock_while_the_job_runs():
    with fake():
        Once.perform_async("again")
        assert Once.drain() == 1
        assert done == ["again", None]
        assert Once.perform_async("again")


def test_fake_mode_frees_a_lock_until_the_start_at_the_start():
    with fake():
        UntilStart.perform_async(1, True)
        assert UntilStart.perform_async(1, True) is None
        assert UntilStart.drain() == 2
        assert done == [1, True, 1]


def test_fake_mode_replaces_the_one_that_waits():
    with fake() as jobs:
        Newest.perform_async("a", "1")
        new = Newest.perform_async("a", "2")
        assert [each["jid"] for each in jobs.jobs()] == [new]
        Newest.drain()
    assert done == ["2"]


def test_a_job_that_fails_in_a_test_mode_frees_its_lock():
    with fake():
        for _ in range(2):
            assert Broken.perform_async()
            with pytest.raises(ZeroDivisionError):
                Broken.perform_one()
    with inline():
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                Broken.perform_async()


def test_inline_mode_refuses_a_job_that_is_under_way():
    with inline():
        assert Once.perform_async("again")
        assert done == ["again", None]
        assert Once.perform_async("again")
