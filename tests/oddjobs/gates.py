"""Workers that are about to claim a slot wait for one another.

So all of them have read what lies in Redis before anyone writes, and nothing but the claim itself keeps
a slot from becoming several jobs. The file `gate` in the journal's directory says how many are to
come; those that do not come in time are not waited for any longer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tests.project import journal
from tests.support.waiting import WaitTimeout, wait_until

FILE = "gate"
#: Longer than the second in which each worker looks once.
LONGEST = 1.5


def middleware(push: Callable[[dict[str, Any]], Any]) -> Callable[..., Any]:
    def together(payload: dict[str, Any]) -> Any:
        path = journal.directory() / FILE
        if "slot" not in payload or not path.exists():
            return push(payload)
        wanted = int(path.read_text())
        here = journal.directory() / f"gate-{payload['slot']}"
        here.mkdir(exist_ok=True)
        (here / str(os.getpid())).touch()
        try:
            wait_until(lambda: len(list(here.iterdir())) >= wanted, timeout=LONGEST)
        except WaitTimeout:
            journal.write(f"late {payload['slot']}")
        else:
            journal.write(f"together {payload['slot']}")
        return push(payload)

    return together
