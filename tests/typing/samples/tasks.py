"""Tasks of Django as a project writes them. Lines marked `must fail` are errors for every type checker."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.tasks import TaskContext

from django_cogworker.tasks import task


@task
def add(left: int, right: int = 0) -> int:
    return left + right


@task(
    retry=5, timeout=timedelta(seconds=30), unique="until_executed", queue_name="mail", priority=-5
)
def send(order_id: int) -> None: ...


@task(takes_context=True, result_ttl=60)
def told(context: TaskContext[Any, Any], name: str) -> str:
    return name


@task(retry="often")  # must fail
def wrong_retry() -> None: ...


@task(rety=5)  # must fail
def unknown_option() -> None: ...


@task(unique="always")  # must fail
def wrong_unique() -> None: ...


value: int = add.enqueue(1, right=2).return_value
text: str = told.enqueue("a").return_value
add.using(priority=3).enqueue(1)
send.enqueue(1)


async def use() -> None:
    found: int = (await add.aenqueue(1)).return_value
    print(found)


add.enqueue("a")  # must fail
add.enqueue(1, 2, 3)  # must fail
send.enqueue(wrong=1)  # must fail
told.enqueue(1)  # must fail
other: str = add.enqueue(1).return_value  # must fail
