"""Runs jobs in the caller: through the server middleware, with nothing around it that a test does not expect.

The caller's database connections, language and time zone stay as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils import timezone, translation

from django_cogworker.conf import PerConfig
from django_cogworker.jobs import registry
from django_cogworker.jobs.definition import Definition
from django_cogworker.payload.codec import check_format, decode
from django_cogworker.worker.chain import build_server_chain
from django_cogworker.worker.runner import Runner

_runner: PerConfig[Runner] = PerConfig(lambda config: Runner(build_server_chain(config)))


def run_here(encoded: bytes) -> Any:
    """Run the job; its return value. What it raises reaches the caller."""
    payload = decode(encoded)
    check_format(payload)
    return run(registry.find_to_run(payload), payload)


def run(
    definition: Definition,
    payload: dict[str, Any],
    failed: Callable[[BaseException], None] | None = None,
) -> Any:
    """Run it. `failed` hears what `perform` raised before any middleware does."""
    with (
        translation.override(translation.get_language()),
        timezone.override(timezone.get_current_timezone()),
    ):
        return _runner().run(definition, payload, failed)
