"""Lays out KEYS and ARGV of a script call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django_cogworker.store.keys import Keys
from django_cogworker.store.values import Effect, Guard


class Plan:
    """Collects the keys of one call, each once, and gives their places (from 1, as Lua counts)."""

    __slots__ = ("_places", "_queues", "keys", "names")

    def __init__(self, names: Keys, fixed: list[str]) -> None:
        self.names = names
        self.keys = fixed
        self._places: dict[str, int] = {}
        self._queues: dict[str, int] = {}

    def queue(self, name: str) -> int:
        """Place of the queue's list; priority set and tokens follow it."""
        place = self._queues.get(name)
        if place is None:
            place = self._queues[name] = len(self.keys) + 1
            queue = self.names.queue(name)
            self.keys += (queue.jobs, queue.priority, queue.tokens)
        return place

    def key(self, name: str) -> int:
        place = self._places.get(name)
        if place is None:
            self.keys.append(name)
            place = self._places[name] = len(self.keys)
        return place

    def effects(self, effects: Sequence[Effect]) -> list[list[Any]]:
        return [
            [each.op, self.key(each.key), *map(self.key, each.others), *map(str, each.args)]
            for each in effects
        ]

    def guards(self, guards: tuple[Guard, ...]) -> list[list[Any]]:
        return [
            [
                self.key(each.key),
                each.owner,
                str(each.ttl),
                each.kind,
                self.key(each.ousted) if each.ousted else 0,
            ]
            for each in guards
        ]
