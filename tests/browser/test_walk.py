"""A walk over all pages, by their own links: nothing goes wrong, everything is in sight and within reach."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.contrib import admin
from django.urls import resolve

from django_cogworker.admin.registration import pages_on
from tests.browser.stage import Stage
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.timeout(300)

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


@pytest.mark.parametrize("what", ["filled", "empty"])
def test_every_page_is_sound_in_every_look_and_by_keyboard(stage: Stage, visit, what):
    if what == "filled":
        stage.fill()
        stage.add_neighbour()
    visitor = visit()
    visitor.rest()
    visitor.known = stock(visitor)
    seen, wrong = set(), []
    for each in walk(visitor):
        seen.add(each)
        name = f"{what}-{each.replace('?', '-')}"
        # The same page asked for in another way is only opened: it has the same parts.
        if "?" in each:
            visitor.picture(name)
        else:
            wrong += visitor.look(name, closely=what == "filled")
    assert wrong == [], "\n".join(wrong)
    pages = pages_on(admin.site)
    assert {f"{each.name}_changelist" for each in pages} <= seen
    if what == "filled":
        assert {f"{each.name}_change" for each in pages if each.item_template} <= seen


@pytest.mark.parametrize(("language", "word"), [("de-DE", "Warteschlangen"), ("ru-RU", "Очереди")])
def test_words_of_longer_languages_have_their_room(stage: Stage, visit, language, word):
    stage.fill()
    visitor = visit(locale=language)
    visitor.rest()
    wrong = []
    for each in walk(visitor):
        assert word in visitor.text()
        if "?" not in each:
            wrong += visitor.fits(f"{language}-{each}")
    assert wrong == [], "\n".join(wrong)
