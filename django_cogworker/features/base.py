"""What a feature may take part in.

A feature brings options, middleware, hooks into the life of a job, and data (guards, effects) that
the core's scripts carry out in the same step as the move itself. It brings no Lua of its own into
them. A method that a feature does not override costs nothing: the core asks only those who answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django_cogworker.client.hooks import PushParts
from django_cogworker.jobs.context import Listener
from django_cogworker.jobs.options import Option
from django_cogworker.store.values import Effect


class Feature:
    """Base of features."""

    name: ClassVar[str]
    options: ClassVar[tuple[Option, ...]] = ()
    #: Factories in the manner of the settings `COGWORKER_CLIENT_MIDDLEWARE` and `COGWORKER_SERVER_MIDDLEWARE`.
    client_middleware: ClassVar[tuple[Callable[..., Any], ...]] = ()
    server_middleware: ClassVar[tuple[Callable[..., Any], ...]] = ()
    listeners: ClassVar[tuple[Listener, ...]] = ()

    def pushed(self, payload: dict[str, Any]) -> PushParts | None:
        """Guards and effects for the push of this job."""
        return None

    def settled(self, payload: dict[str, Any], outcome: str) -> tuple[Effect, ...]:
        """Effects for the step that brings this job to its place.

        `outcome`: `finished`, `retrying`, `dead`, `killed`, `discarded`, `waiting`.
        """
        return ()

    def recovered(self, payload: dict[str, Any], fate: str) -> tuple[Effect, ...]:
        """Effects for the step that brings this job of a dead worker back.

        `fate`: `front` of its queue, `schedule` (it waits, then runs alone) or `dead`.
        """
        return ()

    def beat(self) -> None:
        """Called by the heartbeat thread after each good beat."""

    def tick(self) -> None:
        """Called by the scheduler thread about once a second while the worker is not quiet."""
