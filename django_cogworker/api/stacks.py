"""Where the running jobs of a worker are, on request."""

from __future__ import annotations

from django_cogworker.features.stacks import wishes
from django_cogworker.features.stacks.wishes import JobStack, WorkerStacks

__all__ = ["JobStack", "WorkerStacks", "ask_stacks", "worker_stacks"]


def ask_stacks(identity: str) -> bool:
    """Ask that worker where its running jobs are; false where it does not live. It answers within a beat."""
    return wishes.ask(identity)


def worker_stacks(identity: str) -> WorkerStacks:
    """What it answered, kept for two minutes; or that it was asked. One round trip."""
    return wishes.read(identity)
