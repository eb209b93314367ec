"""Parts of long lists: queries that keep their filters, and pages of what lies in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

from django.http import HttpRequest, QueryDict

T = TypeVar("T")

#: Asks for the part of a page that is refreshed, alone.
LIVE = "_live"
PAGE_SIZE = 50
#: A filter longer than this is no filter.
MAX_FILTER = 500


@dataclasses.dataclass(frozen=True, slots=True)
class Pager:
    """Links to other parts of a list; empty ones are not there. `note`: which part this is."""

    note: Any = ""
    first: str = ""
    previous: str = ""
    next: str = ""

    @property
    def is_needed(self) -> bool:
        return bool(self.first or self.previous or self.next)


def asked(request: HttpRequest, name: str) -> str:
    """A filter's text, without what cannot be meant."""
    return text_of(request.GET, name)


def text_of(given: QueryDict, name: str) -> str:
    return given.get(name, "").replace("\0", "").strip()[:MAX_FILTER]


def one_of(request: HttpRequest, name: str, allowed: Sequence[str]) -> str:
    """A filter with few values; the first of them for anything else."""
    value = request.GET.get(name, "")
    return value if value in allowed else allowed[0]


def query(request: HttpRequest, **changes: Any) -> str:
    """The request's query with these changes (`None` takes one out), as `?…`; `?` alone where nothing is left."""
    found = request.GET.copy()
    found.pop(LIVE, None)
    for name, value in changes.items():
        found.pop(name, None)
        if value not in (None, ""):
            found[name] = str(value)
    return f"?{found.urlencode()}"


def page_number(request: HttpRequest) -> int:
    """Which page the query's `p` asks for, the first where it is no number."""
    try:
        return max(1, int(request.GET.get("p", "1")[:6]))
    except ValueError:
        return 1


def cut(request: HttpRequest, items: Sequence[T], size: int = PAGE_SIZE) -> tuple[list[T], Pager]:
    """One page of the items, by the query's `p`, and the links to the others."""
    last = max(1, -(-len(items) // size))
    number = min(page_number(request), last)
    shown = list(items[(number - 1) * size : number * size])
    pager = Pager(
        note=f"{number} / {last}" if last > 1 else "",
        first=query(request, p=None) if number > 2 else "",
        previous=query(request, p=number - 1 if number > 2 else None) if number > 1 else "",
        next=query(request, p=number + 1) if number < last else "",
    )
    return shown, pager
