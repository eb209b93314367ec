"""The Lua verbs: one file a verb, `lib/` for what several of them share.

A line `-- include: name` is replaced by the text of `lib/name.lua`. A script runs by its hash; only
when the server does not know it, the text is sent, which also makes it known.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from importlib import resources
from typing import Any

import redis

from django_cogworker.store.errors import is_missing_script

_INCLUDE = re.compile(r"^-- include: (\w+)$", re.MULTILINE)


class Script:
    """One verb."""

    __slots__ = ("name", "sha", "text")

    def __init__(self, name: str) -> None:
        self.name = name
        folder = resources.files(__package__)
        text = (folder / f"{name}.lua").read_text("utf-8")
        self.text = _INCLUDE.sub(
            lambda found: (folder / "lib" / f"{found[1]}.lua").read_text("utf-8"), text
        )
        self.sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    def run(self, client: redis.Redis, keys: list[str], args: list[Any]) -> Any:
        """Run it. A missing script was not begun, so sending the text repeats nothing."""
        run: Callable[..., Any] = client.execute_command
        try:
            return run("EVALSHA", self.sha, len(keys), *keys, *args)
        except redis.ResponseError as error:
            if not is_missing_script(error):
                raise
        return run("EVAL", self.text, len(keys), *keys, *args)


@functools.cache
def script(name: str) -> Script:
    return Script(name)
