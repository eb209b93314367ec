"""How job classes and functions are declared and enqueued."""

from __future__ import annotations

import datetime
from typing import Any, assert_type

from django_cogworker import Job, current_job, job


class SendReceipt(Job, queue="mail", retry=5, priority=3):
    def perform(self, order_id: int, *, copy_to: str | None = None) -> None:
        assert_type(self.jid, str)
        assert_type(self.attempt, int)


class Misspelt(Job, queu="mail"):  # must fail
    def perform(self) -> None: ...


class WrongOption(Job, queue=3):  # must fail
    def perform(self) -> None: ...


class WithHooks(Job):
    @classmethod
    def retry_in(cls, count: int, error: BaseException, payload: dict[str, Any]) -> float | None:
        return 5.0

    @classmethod
    def retries_exhausted(cls, payload: dict[str, Any], error: BaseException) -> None: ...

    async def perform(self, name: str) -> int:
        return len(name)


@job(queue="low", retry=False)
def rebuild_index(name: str, full: bool = False) -> int:
    assert_type(current_job().attempt, int)
    return len(name)


@job
def plain() -> None: ...


assert_type(SendReceipt.perform_async(42, copy_to="a@example.com"), str | None)
SendReceipt.perform_async("42")  # must fail
SendReceipt.perform_async()  # must fail
SendReceipt.perform_async(42, copy="a@example.com")  # must fail

assert_type(SendReceipt.perform_in(300, 42), str | None)
SendReceipt.perform_in(datetime.timedelta(minutes=5), 42)
SendReceipt.perform_in("soon", 42)  # must fail
SendReceipt.perform_in(300)  # must fail
SendReceipt.perform_at(datetime.datetime.now(datetime.UTC), 42)
SendReceipt.perform_at(300, "42")  # must fail

assert_type(SendReceipt.perform_bulk([(1,), (2,)]), list[str | None])

SendReceipt.set(queue="urgent", retry=False).perform_async(42)
SendReceipt.set(queue="urgent").perform_async("42")  # must fail
SendReceipt.set(queu="urgent")  # must fail

WithHooks.perform_async("name")
WithHooks.perform_async(3)  # must fail

assert_type(rebuild_index("books"), int)
rebuild_index.perform_async("books", full=True)
rebuild_index.perform_async(3)  # must fail
rebuild_index.set(priority=5).perform_in(10, "books")
rebuild_index.set(prio=5)  # must fail
plain.perform_async()
plain.perform_async(1)  # must fail


async def from_a_coroutine() -> None:
    assert_type(await SendReceipt.aperform_async(42), str | None)
    await SendReceipt.aperform_async("42")  # must fail
    await SendReceipt.set(queue="urgent").aperform_in(5, 42)
    await rebuild_index.aperform_async("books")


def any_class(job_class: type[Job]) -> None:
    job_class.perform_async(1, 2, name="x")
