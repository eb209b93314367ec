"""What happens when a job has died: the class's `retries_exhausted`, the death handlers, the signal
`job_died`.

It comes after the job lies in the dead set and is off the worker's hash. Each callable gets its own
copy of the entry and only as many arguments as it takes; what it raises is logged. It happens at
most once a death, and a crash may skip it.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from typing import Any

from django_cogworker.client.chain import load_middleware
from django_cogworker.conf import Config
from django_cogworker.features.asking import Audience
from django_cogworker.features.base import Run
from django_cogworker.jobs.definition import Definition
from django_cogworker.signals import announce, job_died, job_failed
from django_cogworker.worker.calling import call_accepting

logger = logging.getLogger("django_cogworker")


class DeathHooks:
    """The hooks of one worker."""

    def __init__(self, config: Config) -> None:
        self._handlers = load_middleware(config.death_handlers, "COGWORKER_DEATH_HANDLERS")
        self._audience = Audience()

    def buried(
        self, definition: Definition | None, payload: dict[str, Any], error: BaseException
    ) -> None:
        """A job died without a run that failed here: its worker did, or stopped. Never raises."""
        target = None if definition is None else definition.target
        announce(
            job_failed,
            target,
            jid=payload.get("jid"),
            payload=payload,
            error=error,
            outcome="dead",
        )
        self.run(definition, payload, error)

    def run(
        self, definition: Definition | None, payload: dict[str, Any], error: BaseException
    ) -> None:
        """Run all of them. Never raises."""
        hooks: list[Callable[..., Any]] = []
        if definition is not None and definition.retries_exhausted is not None:
            hooks.append(definition.retries_exhausted)
        for hook in [*hooks, *self._handlers]:
            try:
                call_accepting(hook, copy.deepcopy(payload), error)
            except BaseException:  # an exit included: the job is dead, its thread is not
                logger.exception(
                    "The death hook %r failed for job %s.",
                    hook,
                    payload.get("jid"),
                    extra={"jid": payload.get("jid"), "job_class": payload.get("class")},
                )
        target = None if definition is None else definition.target
        announce(job_died, target, jid=payload.get("jid"), payload=payload, error=error)
        self._audience.tell(Run(payload, "dead", error=error))
