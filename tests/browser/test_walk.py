"""A walk over all pages, by their own links: nothing goes wrong, everything is in sight and within reach."""

from __future__ import annotations

import pytest
from django.contrib import admin

from django_cogworker.admin.registration import pages_on
from tests.browser.stage import Stage
from tests.browser.walking import stock, walk

pytestmark = pytest.mark.timeout(300)


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
