"""Coroutines that use the models, alone and many at a time."""

from __future__ import annotations

import asyncio

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection, transaction

from django_cogworker import Job
from tests.asyncjobs.jobs import file
from tests.project import journal


class BadPair(Exception):
    pass


def state() -> str:
    """What the job finds of the connection that all share."""
    return f"atomic={connection.in_atomic_block} autocommit={connection.get_autocommit()}"


def pair(name: str, *, wait: bool = False, fails: bool = False) -> None:
    """Two rows in one transaction; with `wait` it stays open until the test makes a file."""
    with transaction.atomic():
        User.objects.create(username=f"{name}-1")
        if wait:
            journal.write(f"open {name}")
            journal.wait_for_file(name)
        if fails:
            raise BadPair
        User.objects.create(username=f"{name}-2")
    if wait:
        journal.write(f"closed {name}")


class Mixes(Job, queue="hooks"):
    """Both ways to the models, with a transaction that is rolled back where the job `fails`."""

    async def perform(self, name: str, fails: bool) -> None:
        await User.objects.acreate(username=name)
        try:
            await sync_to_async(pair)(name, fails=fails)
        except BadPair:
            await asyncio.sleep(0)
        user = await User.objects.aget(username=name)
        await User.objects.filter(pk=user.pk).aupdate(first_name="seen")
        rows = [each async for each in User.objects.filter(username__startswith=f"{name}-")]
        journal.write(f"{name} rows={len(rows)} {await sync_to_async(state)()}")


class Holds(Job, queue="hooks"):
    """Waits within a transaction."""

    async def perform(self, name: str, fails: bool = False) -> None:
        await sync_to_async(pair)(name, wait=True, fails=fails)
        journal.write(f"held {name}")


class Row(Job, queue="hooks"):
    async def perform(self, name: str) -> None:
        journal.write(f"asks for {name}")
        await User.objects.acreate(username=name)


class AsksAndWaits(Job, queue="hooks"):
    async def perform(self, name: str) -> None:
        await User.objects.acount()
        journal.write(f"asked {name}")
        await file(name)


class LeavesOpen(Job, queue="hooks"):
    """Ends with a row that was never committed."""

    async def perform(self, name: str, how: str) -> None:
        def leave() -> None:
            if how == "atomic":
                transaction.atomic().__enter__()
            else:
                transaction.set_autocommit(False)
            User.objects.create(username=name)

        await sync_to_async(leave)()


class Reads(Job, queue="hooks"):
    """Reads rows a few at a time, and waits for a file after the first ones."""

    async def perform(self, name: str) -> None:
        seen = 0
        rows = User.objects.filter(username__startswith="a")
        async for _ in rows.aiterator(chunk_size=2):
            seen += 1
            if seen == 2:
                journal.write(f"reading {name}")
                await file(name)
        journal.write(f"read {name} {seen}")


class Answers(Job, queue="hooks", unique="until_executed", track=True, result_ttl=600, retry=1):
    """Says how far it is, waits for a file, and gives back what it got."""

    @classmethod
    def retry_in(cls) -> float:
        return 0.05

    async def perform(self, name: str) -> dict[str, str]:
        self.at(50, "half")
        self.store(mark=name)
        journal.write(f"started {name} {self.attempt}")
        await file(name)
        return {"name": name}


class EndsWhenCancelled(Job, queue="hooks", unique="until_executed", track=True):
    async def perform(self, name: str) -> None:
        journal.write(f"started {name}")
        while True:
            self.at(10)
            await asyncio.sleep(0.01)
