"""A worker's part in cancelling: it drops what waits, and lets the running job know."""

from __future__ import annotations

from typing import Any

from django_cogworker.exceptions import JobCancelled
from django_cogworker.features.base import Feature, Refused
from django_cogworker.features.cancel import asked


class CancelFeature(Feature):
    """The guest. It keeps the jids in memory, so nobody asks Redis when a job starts."""

    name = "cancel"

    def __init__(self) -> None:
        self._asked: frozenset[str] = frozenset()

    def bulletin(self) -> None:
        self._asked = asked.read()

    def admit(self, payload: dict[str, Any]) -> Refused | None:
        if not self.cancelled(payload):
            return None
        return Refused("cancelled", "somebody cancelled it")

    def cancelled(self, payload: dict[str, Any]) -> bool:
        return payload["jid"] in self._asked

    def excused(self, payload: dict[str, Any], error: BaseException) -> Refused | None:
        """A job that ends by `JobCancelled` was cancelled, where somebody did ask for it."""
        if isinstance(error, JobCancelled) and self.cancelled(payload):
            return Refused("cancelled", "it ended because somebody cancelled it")
        return None
