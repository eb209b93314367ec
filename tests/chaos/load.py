"""A pusher: a process that enqueues jobs of all kinds until its time is over.

`python -m tests.chaos.load --name p --seed 7 --seconds 60`. It writes down each job before it pushes
it, and afterwards whether it was accepted, refused, or perhaps accepted.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import django

from tests.project.journal import directory

#: Pushed jobs a second, as long as nothing is in the way.
RATE = 30.0
#: Seconds between two killers of one pusher.
KILLERS_EVERY = 45.0


@dataclass
class Item:
    """A job to be pushed: its kind, arguments, options and delay."""

    kind: str
    args: tuple[Any, ...]
    queue: str = "default"
    priority: int = 0
    delay: float = 0.0
    extra: dict[str, Any] = field(default_factory=dict)


def draw_item(draw: random.Random) -> Item:
    """Any of the harmless kinds. Most are short, some take longer than a stop gives them."""
    seconds = round(draw.choice((0.0, 0.0, 0.02, 0.1, 0.3, draw.uniform(0.3, 1.5))), 3)
    item = Item("work", (seconds,))
    item.queue = draw.choice(("default", "default", "low"))
    item.priority = draw.choice((0, 0, 0, 0, 5, -5))
    if draw.random() < 0.2:
        item.delay = round(draw.uniform(0.1, 6.0), 2)
    chance = draw.random()
    if chance < 0.1:
        item.kind, item.args = "flaky", (seconds, draw.randint(1, 3))
    elif chance < 0.14:
        item.kind, item.args = "doomed", (seconds, 99)
    elif chance < 0.24:
        item.kind, item.args = "shot", (seconds, draw.choice((0, 0, 0, 99)))
    return item


def draw_items(draw: random.Random) -> Iterator[list[Item]]:
    """Lists of one (pushed alone) or many (pushed at once)."""
    while True:
        many = draw.random() < 0.05
        yield [draw_item(draw) for _ in range(draw.randint(5, 60) if many else 1)]


class Pusher:
    """Pushes, and keeps book."""

    def __init__(self, name: str) -> None:
        from django_cogworker import client, exceptions
        from tests.chaos import jobs

        self._name = name
        self._client = client
        self._error = exceptions.PushError
        self._classes: dict[str, Any] = {
            "work": jobs.Work,
            "flaky": jobs.Work,
            "doomed": jobs.Doomed,
            "shot": jobs.Shot,
            "killer": jobs.Killer,
        }
        self._count = 0
        self._book = os.open(
            directory() / f"pushes-{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644
        )

    def write(self, word: str, name: str, detail: str = "-") -> None:
        os.write(self._book, f"{word} {name} {detail}\n".encode())

    def push(self, items: list[Item]) -> None:
        names = []
        for item in items:
            self._count += 1
            names.append(f"{self._name}{self._count}")
            self.write("push", names[-1], item.kind)
        if len(items) == 1:
            self._push_one(names[0], items[0])
        else:
            self._push_many(dict(zip(names, items, strict=True)))

    def _push_one(self, name: str, item: Item) -> None:
        call = self._classes[item.kind].set(queue=item.queue, priority=item.priority)
        push = partial(call.perform_in, item.delay) if item.delay else call.perform_async
        try:
            jid = push(name, *item.args)
        except self._error as error:
            self.write("maybe" if error.ambiguous else "refused", name)
        else:
            self.write("accepted", name, str(jid))

    def _push_many(self, items: dict[str, Item]) -> None:
        jids = {name: os.urandom(12).hex() for name in items}
        payloads = [self._payload(name, jids[name], item) for name, item in items.items()]
        refused: set[str] = set()
        word = "refused"
        try:
            self._client.push_bulk(payloads)
        except self._error as error:
            refused = set(error.refused)
            word = "maybe" if error.ambiguous else "refused"
        for name, jid in jids.items():
            if jid in refused:
                self.write(word, name)
            else:
                self.write("accepted", name, jid)

    def _payload(self, name: str, jid: str, item: Item) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "class": self._classes[item.kind],
            "args": [name, *item.args],
            "jid": jid,
            "queue": item.queue,
            "priority": item.priority,
            "retry": 5 if item.kind in ("work", "flaky") else False,
        }
        if item.kind == "shot":
            payload["at_most_once"] = True
        if item.delay:
            payload["at"] = time.time() + item.delay
        return payload


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    options = parser.parse_args()
    django.setup()
    draw = random.Random(f"{options.seed} {options.name}")
    pusher = Pusher(options.name)
    begin = time.monotonic()
    killer_at = draw.uniform(5, KILLERS_EVERY)
    pushed, due = 0, 0.0
    for items in draw_items(draw):
        elapsed = time.monotonic() - begin
        if elapsed >= options.seconds:
            return
        if elapsed >= killer_at:
            pusher.push([Item("killer", (draw.choice(("exit", "kill")),))])
            killer_at += KILLERS_EVERY
        pusher.push(items)
        pushed += len(items)
        due += len(items) / RATE
        # What an outage held up is not made up for in one go.
        due = max(due, time.monotonic() - begin - 1.0)
        time.sleep(max(0.0, due - (time.monotonic() - begin)))


if __name__ == "__main__":
    main()
