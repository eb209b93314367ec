"""Is a process of this host still there? Asked of `/proc`, not of Redis.

A worker's facts name its host (name, boot id, process-id namespace), its pid and when that started.
Only with the same host facts do two processes see each other's pids. Whatever cannot be told counts
as alive: then the beats decide.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_SAME_HOST = ("hostname", "boot_id", "pid_namespace")


def read_facts(text: str) -> dict[str, Any]:
    """A worker's facts from their JSON; empty where there are none."""
    try:
        facts = json.loads(text)
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def same_host(facts: dict[str, Any], own: dict[str, Any]) -> bool:
    """Whether the two are known to see the same processes."""
    return all(own.get(each) and facts.get(each) == own[each] for each in _SAME_HOST)


def host_rebooted(facts: dict[str, Any], own: dict[str, Any]) -> bool:
    """Whether the worker lived on this host before it was started anew."""
    return bool(
        facts.get("hostname") == own.get("hostname")
        and facts.get("boot_id")
        and own.get("boot_id")
        and facts["boot_id"] != own["boot_id"]
    )


def is_gone(facts: dict[str, Any]) -> bool:
    """Whether a process of this host is no more: no such pid, a zombie, or another process by now."""
    pid, start = facts.get("pid"), facts.get("pid_start")
    if not isinstance(pid, int) or not isinstance(start, str):
        return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        # Without a /proc of our own nothing is proved, and a /proc may hide processes of others.
        return Path("/proc/self/stat").exists() and _is_free(pid)
    except OSError:
        return False
    fields = stat.rpartition(")")[2].split()
    return fields[0] in ("Z", "X", "x") or fields[19] != start


def _is_free(pid: int) -> bool:
    """Whether no process has that number; where we may not even ask, one has."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
