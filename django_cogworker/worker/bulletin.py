"""The bulletin: a number in Redis that says "there is something to read".

It comes with every exchange and every beat, so it costs no call of its own. When it has changed, the
features that take part read what they have there, before any job that came with the same answer can
start.
"""

from __future__ import annotations

import logging
import threading

from django_cogworker.features import registry as features

logger = logging.getLogger("django_cogworker")


class Bulletin:
    """What this worker has read."""

    def __init__(self) -> None:
        self._hooks = features.taking_part("bulletin")
        self._read = -1
        self._lock = threading.Lock()

    def came(self, number: int) -> None:
        """The number as Redis has it now."""
        if number == self._read or not self._hooks:
            return
        with self._lock:
            if number == self._read:
                return
            for hook in self._hooks:
                try:
                    hook()
                except Exception:
                    logger.exception("A feature could not read what was posted for it.")
                    return  # tried again with the next answer
            self._read = number
