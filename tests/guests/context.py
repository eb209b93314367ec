"""Context variables of a project."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

request_id: ContextVar[Any] = ContextVar("request_id")
tenant: ContextVar[Any] = ContextVar("tenant", default="nobody")
not_a_variable = "x"
