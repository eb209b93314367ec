"""Guards without scripts: claimed one by one before the job is written, and given up where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django_cogworker.store.plain.effects import Effects
from django_cogworker.store.scripted import text
from django_cogworker.store.values import Effect, Guard


class Guards:
    """Claims guards."""

    def __init__(self, client: Any, effects: Effects) -> None:
        self._client = client
        self._effects = effects

    def claim(self, guards: Sequence[Guard]) -> str | None:
        """Claim all of them; why the first was not to be had, or `None`."""
        for guard in guards:
            if guard.kind == "claim" and self._client.set(
                guard.key, guard.owner, nx=True, ex=guard.ttl
            ):
                continue
            had = text(self._client.get(guard.key) or b"")
            if guard.kind == "claim" and had != guard.owner:
                return f"duplicate {had}"
            if guard.kind == "rises" and had.isdigit() and int(had) >= int(guard.owner):
                return f"duplicate {had}"
            if guard.kind == "take" and guard.ousted and had not in ("", guard.owner):
                lives = (self._client.ttl(guard.key), self._client.ttl(guard.ousted))
                self._client.hset(guard.ousted, had, 1)
                self._client.expire(guard.ousted, max(guard.ttl, *lives))
            self._client.set(guard.key, guard.owner, ex=guard.ttl)
        return None

    def unclaim(self, guards: Sequence[Guard]) -> None:
        """The job could not be written. What was taken from others or has risen stays as it is."""
        self._effects.apply(
            [
                Effect("delete_if_owner", each.key, (each.owner,))
                for each in guards
                if each.kind == "claim"
            ]
        )
