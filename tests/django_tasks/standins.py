"""Our backend in place of Django's two built-in ones, for Django's own tests of them.

The tests run in fake mode, which does what the dummy backend does: it collects tasks. `Immediate` runs them at once,
which is inline mode. Nothing else differs from the backend that projects use.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django_cogworker.client.transport import pop_override, push_override
from django_cogworker.tasks import CogworkerBackend
from django_cogworker.testing.inline import InlineTransport

_inline = InlineTransport()


@contextmanager
def _in_force() -> Iterator[None]:
    push_override(_inline)
    try:
        yield
    finally:
        pop_override(_inline)


class Dummy(CogworkerBackend):
    """Collects."""


class Immediate(CogworkerBackend):
    """Runs."""

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        with _in_force():
            return super().enqueue(task, args, kwargs)

    def get_result(self, result_id: Any) -> Any:
        with _in_force():
            return super().get_result(result_id)
