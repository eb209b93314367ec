"""A task in a module that no autodiscovery imports, beside what is none."""

from __future__ import annotations

from django_cogworker.tasks import task
from tests.project import journal


@task
def write_letter(name: str) -> str:
    journal.write(f"letter {name}")
    return f"Dear {name}"


def no_task(name: str) -> None:
    journal.write(f"no task {name}")
