"""Options, hooks and shapes of job classes and functions, good and bad."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar, assert_type

from django_cogworker import DISCARD, KILL, Job, JobContext, current_job, job
from django_cogworker.client import push, push_bulk
from django_cogworker.testing import assert_enqueued, drain_all, fake

T = TypeVar("T")


class AllOptions(
    Job,
    queue="mail",
    retry=False,
    priority=-5,
    on_commit="replica",
    at_most_once=True,
    tags=["a"],
    extra={"tenant": 3},
    aliases=["old.Name"],
):
    discard_on = (ValueError, KeyError)

    def perform(self, a: int, b: str = "", *rest: float, c: bool, d: bytes = b"") -> None: ...


class WrongRetry(Job, retry="often"):  # must fail
    def perform(self) -> None: ...


class WrongPriority(Job, priority="high"):  # must fail
    def perform(self) -> None: ...


class WrongTags(Job, tags=3):  # must fail
    def perform(self) -> None: ...


class WrongExtra(Job, extra=[1]):  # must fail
    def perform(self) -> None: ...


class WrongCommit(Job, on_commit=3.5):  # must fail
    def perform(self) -> None: ...


class WrongAliases(Job, aliases=[1]):  # must fail
    def perform(self) -> None: ...


class Unknown(Job, retries=3):  # must fail
    def perform(self) -> None: ...


class Base(Job, queue="base"):
    """Abstract: others derive from it."""


class Child(Base, retry=2):
    def perform(self, when: datetime.date) -> datetime.date:
        return when


class Grandchild(Child, priority=1):
    pass


class Holder(Job, Generic[T]):
    def held(self, value: T) -> T:
        return value


class IntHolder(Holder[int]):
    def perform(self, value: int) -> int:
        return self.held(value)


class Hooks(Job):
    @classmethod
    def retry_in(cls, count: int, error: BaseException, payload: dict[str, Any]) -> Any:
        return DISCARD if count else KILL

    def perform(self) -> None:
        assert_type(self.jid, str)
        assert_type(self.attempt, int)
        assert_type(self.payload, dict[str, Any])
        assert_type(self.stopping, bool)
        assert_type(self.cancelled, bool)
        assert_type(self.context, JobContext)
        self.at(50, "half")
        self.at("half")  # must fail
        self.store(anything=1)
        self.jid = "x"  # must fail


today = datetime.date(2026, 11, 30)
later = datetime.datetime(2026, 11, 30, tzinfo=datetime.UTC)

# Positional, by name, with defaults, with more.
AllOptions.perform_async(1, "b", 0.5, 0.25, c=True, d=b"x")
AllOptions.perform_async(1, c=False)
AllOptions.perform_async(a=1, b="b", c=True)
AllOptions.perform_async(1)  # must fail
AllOptions.perform_async(1, "b", "rest", c=True)  # must fail
AllOptions.perform_async(1, c="yes")  # must fail
AllOptions.perform_async(1, c=True, e=1)  # must fail
AllOptions.perform_async(None, c=True)  # must fail

# Inheritance.
Child.perform_async(today)
Child.perform_async("today")  # must fail
Grandchild.perform_async(today)
Grandchild.perform_async(5)  # must fail
IntHolder.perform_async(5)
IntHolder.perform_async("5")  # must fail

# Times.
assert_type(Child.perform_in(5, today), str | None)
assert_type(Child.perform_in(0.5, today), str | None)
assert_type(Child.perform_in(datetime.timedelta(days=1), today), str | None)
assert_type(Child.perform_at(later, today), str | None)
assert_type(Child.perform_at(1.5e9, today), str | None)
Child.perform_in(later, today)  # must fail
Child.perform_at("tomorrow", today)  # must fail
Child.perform_at(datetime.timedelta(days=1), today)  # must fail
Child.perform_in(5)  # must fail
Child.perform_at(later, 5)  # must fail

# Bulk is not typed by perform, but it is typed.
assert_type(Child.perform_bulk([(today,), [today], {"when": today}]), list[str | None])
Child.perform_bulk(((today,) for _ in range(3)), at=later)
Child.perform_bulk([1, 2])  # must fail
Child.perform_bulk(5)  # must fail
Child.perform_bulk([(today,)], at="now")  # must fail

# Options of one call.
assert_type(Child.set(queue="x").perform_async(today), str | None)
Child.set(queue="x").set(retry=3).perform_in(5, today)
Child.set(queue="x").perform_in(5, "today")  # must fail
Child.set(queue="x").perform_at(later, 5)  # must fail
Child.set(queue="x").set(retry=3).perform_async(5)  # must fail
Child.set(queue=5)  # must fail
Child.set(priority="high")  # must fail
Child.set(on_commit=5)  # must fail
Child.set(at_most_once="yes")  # must fail
Child.set("x")  # must fail
Child.set(queue="x").set(queu="y")  # must fail

# The result of an enqueued job is its jid, not what perform returns.
wrong: datetime.date = Child.perform_async(today)  # must fail


async def twins() -> None:
    assert_type(await Child.aperform_async(today), str | None)
    assert_type(await Child.aperform_in(5, today), str | None)
    assert_type(await Child.aperform_at(later, today), str | None)
    assert_type(await Child.aperform_bulk([(today,)]), list[str | None])
    assert_type(await Child.set(queue="x").aperform_async(today), str | None)
    await Child.aperform_async("today")  # must fail
    await Child.aperform_in("soon", today)  # must fail
    await Child.aperform_at(later, 5)  # must fail
    await Child.aperform_bulk(5)  # must fail
    await Child.set(queue="x").aperform_async("today")  # must fail
    await Child.set(queue="x").aperform_at(later, 5)  # must fail


# Functions.


@job
def plain(a: int, *, b: str = "") -> float:
    return current_job().attempt * 1.0


@job(queue="low", retry=3, priority=1, tags=["x"], extra={"y": 1}, aliases=["old.f"])
async def slow(a: int) -> str:
    return str(a)


@job(queu="low")  # must fail
def misspelt() -> None: ...


@job(priority="high")  # must fail
def wrong_priority() -> None: ...


@job(discard_on=ValueError)  # must fail
def wrong_discard() -> None: ...


assert_type(plain(1, b="x"), float)
plain("1")  # must fail
assert_type(plain.perform_async(1, b="x"), str | None)
plain.perform_async(1, b=2)  # must fail
plain.perform_in(5, 1)
plain.perform_in(5)  # must fail
plain.perform_at(later, 1)
plain.perform_at("then", 1)  # must fail
plain.perform_bulk([(1,)])
plain.set(queue="x").perform_async(1)
plain.set(queue="x").perform_async("1")  # must fail
plain.set(prioritty=1)  # must fail
assert_type(plain.job_name, str)
assert_type(plain.__name__, str)
coroutine: Coroutine[Any, Any, str] = slow(1)
as_function: Callable[[int], Any] = slow
slow.perform_async(1)
slow.perform_async("1")  # must fail


async def twins_of_functions() -> None:
    assert_type(await plain.aperform_async(1), str | None)
    await plain.aperform_async()  # must fail
    await slow.aperform_in(5, 1)
    await slow.aperform_in(5, "1")  # must fail


# The low-level client and the test helpers.
assert_type(push({"class": "x", "args": [1]}), str | None)
assert_type(push_bulk([{"class": Child}]), list[str | None])
push("x")  # must fail
push_bulk([1])  # must fail

with fake() as transport:
    assert_type(transport.jobs(), list[dict[str, Any]])
    assert_type(Child.jobs, list[dict[str, Any]])
    assert_type(plain.jobs, list[dict[str, Any]])
    assert_type(Child.drain(), int)
    assert_type(drain_all(), int)
    assert_type(assert_enqueued(Child, args=(today,), count=1), list[dict[str, Any]])
    assert_enqueued(Child, count="one")  # must fail
