"""The gate: whether jobs may be fetched now.

It is open while the worker works, held back while a suspect is to run alone, and of no use under an
identity that has not had a good beat.
"""

from __future__ import annotations

from django_cogworker.worker.identity import Membership


class Gate:
    """The one of a fetcher. Any thread moves it."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self.is_open = self.is_held_back = False

    def may_fetch(self) -> bool:
        return self.is_open and not self.is_held_back and self._membership.is_present
