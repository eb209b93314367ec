"""The filter above a list of jobs: from the query of a page to criteria, and back into its form."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext_lazy

from django_cogworker import api
from django_cogworker.admin.listing import text_of

#: What it is called in the query, and among the criteria.
NAMES = {
    "q": "anything",
    "class": "job_class",
    "args": "arguments",
    "jid": "jid",
    "error": "error",
    "queue": "queue",
    "tag": "tag",
    "error_group": "error_group",
}
LABELS = {
    "q": gettext_lazy("Anything"),
    "class": gettext_lazy("Job class"),
    "args": gettext_lazy("Arguments"),
    "jid": gettext_lazy("Job"),
    "error": gettext_lazy("Error"),
    "queue": gettext_lazy("Queue"),
    "tag": gettext_lazy("Tag"),
    "error_group": gettext_lazy("Group of errors"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """One field of the form."""

    name: str
    label: Any
    value: str


def asked_for(given: QueryDict, names: Iterable[str]) -> dict[str, str]:
    """What is asked for, by its name in the query."""
    found = {name: text_of(given, name) for name in names}
    return {name: value for name, value in found.items() if value}


def criteria_of(asked: dict[str, str]) -> api.Criteria:
    """They look at what the pages show, so that nobody finds out by trying what is masked."""
    return api.Criteria.read(
        {NAMES[name]: value for name, value in asked.items()} | {"masked": True}
    )


def told(criteria: api.Criteria) -> str:
    """For people, in one line; empty where everything matches."""
    labels = {field: LABELS[name] for name, field in NAMES.items()}
    return ", ".join(f"{labels[name]}: {value}" for name, value in criteria.texts().items())
