"""What the project says of its databases, as far as it counts for a worker. No connection is opened."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from django.db import connections


@dataclasses.dataclass(frozen=True, slots=True)
class Database:
    """One that is a server."""

    alias: str
    max_age: float | None
    health_checks: bool
    #: Whether connections come from a pool, and how many it has at most.
    pooled: bool
    pool_size: int


def databases() -> list[Database]:
    """All that are servers; SQLite has no connection that could be lost."""
    found = []
    for alias, row in connections.settings.items():
        engine = str(row["ENGINE"])
        if engine.endswith((".sqlite3", ".spatialite", ".dummy")):
            continue
        pool = (row.get("OPTIONS") or {}).get("pool")
        size = _pool_size(engine, pool if isinstance(pool, Mapping) else {})
        age, checked = row.get("CONN_MAX_AGE", 0), bool(row.get("CONN_HEALTH_CHECKS"))
        found.append(Database(alias, age, checked, bool(pool), size))
    return found


def _pool_size(engine: str, options: Mapping[str, Any]) -> int:
    """What psycopg and python-oracledb make of these options of a pool."""
    if "oracle" in engine:
        return int(options.get("max", 2))
    return int(options.get("max_size") or options.get("min_size", 4))
