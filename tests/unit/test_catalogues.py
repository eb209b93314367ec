"""The translations: each language says all that the code says, and nothing else."""

from __future__ import annotations

import gettext
from collections import defaultdict

import pytest

from tests.support.needs import need
from tools import catalogue, messages

#: How many forms the newest Django has for each; older ones have fewer for some, which does not matter.
LANGUAGES = {"de": 2, "es": 3, "fr": 3, "ru": 4, "zh_Hans": 1}
every_language = pytest.mark.parametrize("language", LANGUAGES)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """The keys of all messages in the code."""
    need("msgfmt")
    template = messages.extract(tmp_path_factory.mktemp("messages"))
    return {each.key for each in catalogue.read(template).entries}


def test_these_are_the_languages():
    assert messages.languages() == list(LANGUAGES)


@every_language
def test_a_catalogue_has_every_message_of_the_code_and_no_other(said, language):
    found = catalogue.read(messages.path_of(language))
    keys = [each.key for each in found.entries]
    told = "python3 tools/messages.py brings the catalogues up to date"
    assert sorted(said - set(keys)) == [], told
    assert sorted(set(keys) - said) == [], told
    assert len(keys) == len(set(keys))
    assert found.obsolete == 0
    assert len(said) > 400


@every_language
def test_nothing_is_empty_or_guessed(language):
    for each in catalogue.read(messages.path_of(language)).entries:
        assert all(text.strip() for text in each.translations.values()), each.key
        assert "fuzzy" not in each.flags, each.key


@every_language
def test_plural_forms_are_those_of_django(language):
    ours = catalogue.read(messages.path_of(language))
    assert ours.plurals == LANGUAGES[language]
    for each in ours.entries:
        assert len(each.translations) == (ours.plurals if each.plural else 1), each.key


@every_language
def test_placeholders_are_those_of_the_original(language):
    found = catalogue.read(messages.path_of(language))
    numbers = numbers_of_forms(found.header)
    for each in found.entries:
        one, many = (set(catalogue.placeholders(text)) for text in (each.text, each.plural))
        for form, text in each.translations.items():
            used = set(catalogue.placeholders(text))
            if not each.plural:
                wanted = catalogue.placeholders(each.text)
                assert catalogue.placeholders(text) == wanted, each.key
            elif len(numbers[form]) == 1:
                assert one <= used <= many, each.key
            else:  # a form for several numbers has to say which it is
                assert used == many, each.key


def numbers_of_forms(header):
    """Of each plural form the numbers below 200 that have it; those of fractions have none."""
    rule = gettext.c2py(header.split("plural=")[-1].split(";")[0])
    found = defaultdict(list)
    for number in range(200):
        found[rule(number)].append(number)
    return found


@every_language
def test_the_compiled_catalogue_is_made_of_the_other(tmp_path, language):
    need("msgfmt")
    path, fresh = messages.path_of(language), tmp_path / "django.mo"
    messages.compile_one(path, fresh)
    assert texts(path.with_suffix(".mo")) == texts(fresh)


def texts(path):
    with path.open("rb") as file:
        return vars(gettext.GNUTranslations(file))["_catalog"]
