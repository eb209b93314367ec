"""The pages in the languages that come with the package: the viewer's language decides."""

from __future__ import annotations

import html
import json
import re

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import call_command
from django.utils import translation

from django_cogworker import api
from django_cogworker.display.quantities import count, size
from tests.admin.conftest import ADDRESSES, add_failed, at
from tests.redis.waiting_jobs import enqueue

pytestmark = pytest.mark.django_db

#: As browsers ask for it: what the overview is called, the queues, and a button.
LANGUAGES = {
    "de": ("Überblick", "Warteschlangen", "Anhalten"),
    "fr": ("Vue d’ensemble", "Files", "Suspendre"),
    "es": ("Resumen", "Colas", "Pausar"),
    "zh-hans": ("概览", "队列", "暂停"),
    "ru": ("Обзор", "Очереди", "Приостановить"),
}


@pytest.fixture
def look(settings, admin):
    """Asks for a page in a language."""
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]

    def ask(address, language, given=None):
        header = {"Accept-Language": language}
        if given is None:
            answer = admin.get(address, headers=header)
        else:
            answer = admin.post(address, given, headers=header, follow=True)
        assert answer.status_code == 200
        return html.unescape(answer.content.decode())

    return ask


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("page", "item"), ADDRESSES)
def test_every_page_is_shown_in_every_language(busy, look, language, page, item):
    text = look(at(page, item), language)
    assert f'<html lang="{language}"' in text
    # The tabs are on all pages.
    assert all(f">{each}</a>" in text for each in LANGUAGES[language][:2])
    assert "Job classes" not in text


def test_who_looks_decides(busy, look):
    for language, (title, _, button) in [*LANGUAGES.items(), *reversed(LANGUAGES.items())]:
        text = look(at("overview"), language)
        assert f"<h1>{title}</h1>" in text
        assert f">{button}</button>" in text
    assert "<h1>Overview</h1>" in look(at("overview"), "en")
    # One that we do not have: Django's own words are in it, ours English.
    text = look(at("overview"), "nl")
    assert '<html lang="nl"' in text
    assert "<h1>Overview</h1>" in text


@pytest.mark.parametrize(
    ("number", "words"),
    [(1, "Всего 1 задание."), (2, "Всего 2 задания."), (5, "Всего 5 заданий."), (21, "1 задание.")],
)
def test_numbers_have_the_form_of_their_word(redis_client, look, number, words):
    enqueue(redis_client, *(f"job{each}" for each in range(number)))
    assert words in look(at("queue", "default"), "ru")


def test_dates_numbers_and_sizes_are_written_as_in_the_language(busy, look):
    busy.zadd("cogworker:losses", {'{"at": 1700000000, "how": "x", "pid": 1, "lived": 1}': 1})
    expected = {"de": "14.11.2023 22:13:20", "zh-hans": "2023年11月14日 22:13:20"}
    for language, words in expected.items():
        assert f">{words}</time>" in look(at("worker"), language)
    with translation.override("fr"):
        assert size(1_400) == "1,4 ko"
    with translation.override("de"):
        assert count(1_234_567) == "1.234.567"


def test_reasons_are_in_the_language_of_who_looks_and_what_is_stored_is_not(busy, look):
    add_failed(busy, "failing")
    api.Queue("default").pause()
    address = at("job", "failing")
    assert "Die Warteschlange default ist angehalten." in look(address, "de")
    assert "La file default est suspendue." in look(address, "fr")
    line = {"slot": 1, "at": 2, "skipped": "the entry was disabled"}
    busy.rpush("cogworker:periodic:ledger:nightly", json.dumps(line))
    assert "der Eintrag war deaktiviert" in look(at("periodic", "nightly"), "de")


def test_messages_are_in_the_language_of_who_acts_and_log_entries_in_english(busy, look):
    act = at("queue") + "act/"
    text = look(act, "de", {"action": "pause", "item": "low"})
    assert "Angehalten: low. Jobs, die schon laufen, laufen weiter." in text
    (entry,) = LogEntry.objects.all()
    assert entry.change_message == "Paused."
    handle = next(iter(api.RetrySet())).handle
    given = {"action": "reschedule", "item": handle, "minutes": "1500"}
    assert "1 Job ist in 1.500 Minuten fällig." in look(at("retry") + "act/", "de", given)
    given = {"action": "retry", "scope": "all", "confirmed": "1"}
    look(at("retry") + "act/", "de", given)
    told = [each.change_message for each in LogEntry.objects.order_by("pk")[1:]]
    assert told[0] == "Due 1,500 minutes after this."
    assert told[1].startswith("Retry now, all that match (everything): ")


def test_the_command_line_is_english_whatever_is_active(busy, capsys):
    add_failed(busy, "failing")
    with translation.override("de"):
        call_command("cogworker", "explain", "failing")
        assert translation.get_language() == "de"
        assert "Der Job ist" in api.explain("failing").reasons[0].text
    said = capsys.readouterr().out
    assert re.search(
        r"It failed \(OSError\) and is not tried again before \d{4}-\d\d-\d\d \d", said
    )
