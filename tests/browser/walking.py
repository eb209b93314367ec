"""A walk over all pages, by their own links."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

from django.urls import resolve

from tests.browser.visitor import Visitor

START = "/admin/django_cogworker/overview/"


def kind(path: str) -> str:
    """Addresses of the same kind look alike: the same view, asked for in the same way."""
    parts = urlsplit(path)
    view = (resolve(parts.path).url_name or "").removeprefix("django_cogworker_")
    return "?".join([view, *sorted({name for name, _ in parse_qsl(parts.query)})])


def walk(visitor: Visitor) -> Iterator[str]:
    """Open one page of each kind; their kinds."""
    ahead, seen = [START], set()
    while ahead:
        path = ahead.pop(0)
        if kind(path) in seen:
            continue
        seen.add(kind(path))
        visitor.open(path)
        ahead += visitor.links()
        yield kind(path)


def stock(visitor: Visitor) -> set[str]:
    """The rules that Django's own index breaks: not ours to mend."""
    visitor.open("/admin/")
    return {each.partition(":")[0] for each in visitor.axe()}
