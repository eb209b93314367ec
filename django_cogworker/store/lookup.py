"""Finding entries again by where they were seen, in one round trip and without going through everything.

In a sorted set that is a score, in a list the distance from its right end: what was fetched since has brought the entry
nearer to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import redis

from django_cogworker.store.walks import Lying, Stretch

#: Entries of one score that are looked at.
MOST_OF_SCORE = 5_000
#: So far an entry of a list may have come nearer to the end, and so far jobs put back may have moved it away.
NEARER, FARTHER = 2_000, 100


def look_again(
    client: redis.Redis,
    stretches: Sequence[Stretch],
    scores: Collection[float],
    distances: Collection[int],
    wanted: Callable[[bytes], bool],
) -> list[Lying]:
    """Entries with these scores, or at these distances, that are wanted."""
    pipe: Any = client.pipeline(transaction=False)
    asked: list[tuple[str, float | None, int]] = []
    for key in dict.fromkeys(each.key for each in stretches if each.kind == "set"):
        for each in sorted(set(scores)):
            pipe.zrangebyscore(key, each, each, 0, MOST_OF_SCORE)
            asked.append((key, each, 0))
    for key in (each.key for each in stretches if each.kind == "list"):
        for near, far in _windows(distances):
            pipe.lrange(key, -far - 1, -near - 1)
            asked.append((key, None, near))
    found = []
    if asked:
        for (key, score, near), answer in zip(
            asked, pipe.execute(raise_on_error=False), strict=True
        ):
            if isinstance(answer, redis.ResponseError):
                continue  # of the wrong type: nothing is there
            if isinstance(answer, Exception):
                raise answer
            for number, member in enumerate(reversed(answer)):
                if wanted(member):
                    far = -1 if score is not None else near + number
                    found.append(Lying(0, key, member, score, far))
    return found


def _windows(distances: Collection[int]) -> list[tuple[int, int]]:
    """What is to be read of a list, as distances from its right end; those that meet are one."""
    windows: list[tuple[int, int]] = []
    for each in sorted(set(distances)):
        near, far = max(0, each - NEARER), each + FARTHER
        if windows and near <= windows[-1][1] + 1:
            windows[-1] = (windows[-1][0], far)
        else:
            windows.append((near, far))
    return windows
