"""`manage.py runcogworker`: `runworker` under a name that no other app uses."""

from __future__ import annotations

from django_cogworker.management.commands.runworker import Command

__all__ = ["Command"]
