"""Every thread's stack as text: what `TTIN` writes to the log."""

from __future__ import annotations

import sys
import threading
import traceback


def all_stacks() -> str:
    names = {each.ident: each.name for each in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():
        stack = "".join(traceback.format_stack(frame))
        parts.append(f"Thread {names.get(ident, 'unknown')} ({ident}):\n{stack}")
    return "\n".join(parts)
