"""Where the floors above take part in a push.

`push_hooks` are asked for each payload once it is encoded, so they see it as it travels, and answer
with guards and effects for the same script. `find_sender` turns the class name of a payload into
the sender of Django signals; the registry of job classes puts itself here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from django_cogworker.store.values import Effect, Guard


@dataclasses.dataclass(frozen=True, slots=True)
class PushParts:
    """What a feature adds to the push of one job."""

    guards: tuple[Guard, ...] = ()
    effects: tuple[Effect, ...] = ()
    #: Called in this process once the job has been taken, after the commit that it waited for.
    taken: Callable[[], None] | None = None


PushHook = Callable[[dict[str, Any]], PushParts | None]

push_hooks: list[PushHook] = []

#: Called with the payload of a job that was refused as a duplicate, and who has the claim, in the call
#: that enqueued it alone. What such a hook raises reaches the caller.
refusal_hooks: list[Callable[[dict[str, Any], str], None]] = []


def _no_sender(class_name: str) -> Any:
    return None


find_sender: Callable[[str], Any] = _no_sender
