"""The locks of unique jobs: who has which, and how to release one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from django_cogworker.features.unique.locks import name_of, passed_on
from django_cogworker.store.scripted import text
from django_cogworker.store.store import get_store
from django_cogworker.store.values import Effect

#: So many entries of the index are looked at in one round trip.
PAGE = 500


@dataclasses.dataclass(frozen=True, slots=True)
class UniqueLock:
    """A lock: its key, the class and jid of the job that has it, and the seconds until it ends by itself."""

    key: str
    job_class: str
    jid: str
    ttl: float


def unique_locks(limit: int = 1000) -> list[UniqueLock]:
    """The locks of unique jobs, those that end first at the beginning; at most `limit`.

    O(limit), besides entries of locks that are gone, which it clears away as it meets them.
    """
    found: list[UniqueLock] = []
    client: Any = get_store().client
    start = 0
    while len(found) < limit:
        page = client.zrange(_index(), start, start + PAGE - 1)
        if not page:
            break
        entries = [text(each) for each in page]
        locks = _living(entries)
        gone = [each for each in entries if each not in locks]
        if gone:
            get_store().apply([Effect("forget", _index(), tuple(gone))])
        start += len(entries) - len(gone)
        found += locks.values()
    return found[:limit]


def release_lock(key: str) -> bool:
    """Delete the lock with that key, so that the next push (or start) gets it; false where there is none.

    The job that had it is not touched: it still runs. The first of those that wait for it is due at once.
    """
    store = get_store()
    name = name_of(store.keys, key)
    had = store.client.exists(name)
    store.apply([Effect("delete", name), passed_on(store.keys, key)])
    return bool(had)


def _index() -> str:
    return get_store().keys.of("unique", "index")


def _split(entry: str) -> tuple[str, str, str]:
    """Key, jid and class."""
    key, _, rest = entry.partition(" ")
    jid, _, job_class = rest.partition("\n")
    return key, jid, job_class


def _living(entries: Iterable[str]) -> dict[str, UniqueLock]:
    """Those entries of the index whose job really has the lock."""
    keys = get_store().keys
    split = {each: _split(each) for each in entries}
    pipe: Any = get_store().client.pipeline(transaction=False)
    for key, _, _ in split.values():
        name = name_of(keys, key)
        pipe.get(name)
        pipe.pttl(name)
    answers = pipe.execute(raise_on_error=False)
    found = {}
    for place, (entry, (key, jid, job_class)) in enumerate(split.items()):
        owner, left = answers[2 * place : 2 * place + 2]
        if isinstance(owner, bytes) and text(owner) == jid and isinstance(left, int):
            found[entry] = UniqueLock(key, job_class, jid, max(0, left) / 1000)
    return found
