"""Where the pages are: on the default site, on others, or nowhere; and what apps add to them."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.contrib import admin as django_admin
from django.core.management import call_command
from django.urls import clear_url_caches, path, reverse
from django.utils.html import format_html

from django_cogworker.admin import (
    Action,
    Column,
    Outcome,
    Page,
    register,
    register_column,
    register_page,
)
from django_cogworker.admin.columns import withdraw_column
from django_cogworker.admin.registration import withdraw_page
from django_cogworker.exceptions import ConfigurationError
from tests.admin.conftest import LISTS, at

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def addresses(settings):
    """Reads the address lists anew, with a second site below `ops/`."""
    made = []

    def read(site):
        urls = [path("admin/", django_admin.site.urls), path("ops/", site.urls)]
        settings.ROOT_URLCONF = tuple(urls)
        clear_url_caches()
        made.append(site)

    yield read
    clear_url_caches()


# -- sites


@pytest.mark.django_db
def test_a_second_site_has_all_pages_with_links_of_its_own(busy, admin, addresses):
    ops = django_admin.AdminSite(name="ops")
    register(ops)
    register(ops)  # once more is harmless
    addresses(ops)
    text = admin.get("/ops/django_cogworker/overview/").content.decode()
    assert [each for each in LISTS if f'href="/ops/django_cogworker/{each}/"' not in text] == []
    assert "/admin/django_cogworker" not in text
    item = admin.get("/ops/django_cogworker/queue/default/change/")
    assert item.status_code == 200
    answer = admin.post("/ops/django_cogworker/queue/act/", {"action": "pause", "item": "default"})
    assert answer.headers["Location"] == "/ops/django_cogworker/queue/"


@pytest.mark.django_db
def test_the_migrations_are_complete():
    call_command("makemigrations", "--check", "--dry-run", stdout=StringIO())


@pytest.mark.django_db
def test_no_table_is_made():
    from django.db import connection

    assert [
        each for each in connection.introspection.table_names() if each.startswith("django_cogw")
    ] == []


SCRIPT = """
import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS={apps}, COGWORKER_ADMIN={wanted}, SECRET_KEY="x", USE_TZ=True,
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware",
                "django.contrib.auth.middleware.AuthenticationMiddleware",
                "django.contrib.messages.middleware.MessageMiddleware"],
    TEMPLATES=[{{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS":
        {{"context_processors": ["django.template.context_processors.request",
          "django.contrib.auth.context_processors.auth", "django.contrib.messages.context_processors.messages"]}}}}],
)
django.setup()
from django.core.management import call_command
from django.template import engines
engines.all()[0].from_string("{{% load cogworker %}}{{{{ 1|cog_duration }}}}").render()
call_command("check")
import sys
from django.apps import apps
print("django_cogworker.admin" in sys.modules)
if apps.is_installed("django.contrib.admin"):
    from django.contrib import admin
    print(sum(each._meta.app_label == "django_cogworker" for each in admin.site._registry))
"""
ADMIN = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
]


@pytest.mark.parametrize(
    ("apps", "wanted", "printed"),
    [
        ([], True, "False"),
        (["django.contrib.contenttypes", "django.contrib.auth"], True, "False"),
        (ADMIN, True, f"True {len(LISTS)}"),
        (ADMIN, False, "True 0"),
        (["django.contrib.admin.apps.SimpleAdminConfig", *ADMIN[1:]], True, "False 0"),
    ],
    ids=["alone", "without admin", "with admin", "opted out", "without autodiscovery"],
)
def test_projects_without_the_admin_need_none_of_it(apps, wanted, printed):
    code = SCRIPT.format(apps=[*apps, "django_cogworker"], wanted=wanted)
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split("\n", 1)[1].split() == printed.split()


# -- what apps add


class Notes(Page):
    """A page as an app has it."""

    name = "notes"
    title = "Notes on jobs"
    template = "notes.html"
    permission = "auth.view_user"
    actions = (
        Action(
            name="keep",
            label="Keep",
            about="Keep %(item)s",
            done="Kept.",
            permission="auth.change_user",
            carry_out=lambda items: Outcome("Kept.", items),
        ),
    )

    def context(self, request):
        return {"notes": ["one <note>"]}


@pytest.fixture
def notes(addresses, settings):
    register_page(Notes)
    settings.TEMPLATES = [
        {
            **settings.TEMPLATES[0],
            "APP_DIRS": False,
            "OPTIONS": {
                **settings.TEMPLATES[0]["OPTIONS"],
                "loaders": [
                    "django.template.loaders.app_directories.Loader",
                    (
                        "django.template.loaders.locmem.Loader",
                        {
                            "notes.html": "{% load cogworker %}{% for each in notes %}<p>{{ each }}</p>"
                            "{% cog_action 'keep' 'n1' %}{% endfor %}"
                        },
                    ),
                ],
            },
        }
    ]
    site = django_admin.AdminSite(name="ops")
    register(site)
    addresses(site)
    yield Notes
    withdraw_page(Notes)


@pytest.mark.django_db
def test_an_app_adds_a_page_with_an_action(redis_client, notes, admin, viewer):
    address = "/ops/django_cogworker/overview/more/notes/"
    text = admin.get(address).content.decode()
    assert "one &lt;note&gt;" in text
    assert "Notes on jobs" in text
    assert "data-cog-poll" in text
    assert f'href="{address}" aria-current="page"' in text
    assert address in admin.get("/ops/django_cogworker/queue/").content.decode()
    answer = admin.post(address + "act/", {"action": "keep", "item": "n1"}, follow=True)
    assert "Kept." in answer.content.decode()
    # Its permission is the app's own.
    assert viewer.get(address).status_code == 403
    assert address not in viewer.get("/ops/django_cogworker/queue/").content.decode()


def test_a_name_is_taken_once():
    with pytest.raises(ConfigurationError, match="queue"):
        register_page(type("Again", (Page,), {"name": "queue"}))


@pytest.mark.django_db
@pytest.mark.parametrize("page", LISTS[1:])
def test_an_app_adds_a_column(busy, viewer, page, caplog):
    column = Column("Team", lambda row: format_html("<b>{}</b>", type(row).__name__))
    broken = Column("Broken", lambda row: 1 / 0)
    register_column(page, column)
    register_column(page, broken)
    try:
        text = viewer.get(at(page)).content.decode()
    finally:
        withdraw_column(page, column)
        withdraw_column(page, broken)
    kind = {
        "job": "Sighting",
        "error": "ErrorGroup",
        "queue": "QueueState",
        "scheduled": "SortedEntry",
        "retry": "SortedEntry",
        "dead": "SortedEntry",
        "periodic": "PeriodicState",
        "worker": "Process",
        "history": "HistoryEntry",
        "jobclass": "ClassStats",
    }[page]
    assert '<th scope="col">Team</th>' in text
    assert f"<td><b>{kind}</b></td>" in text
    assert "<td>?</td>" in text
    assert "'Broken' failed" in caplog.text


def test_the_addresses_are_those_of_the_docs():
    assert reverse("admin:django_cogworker_overview_changelist").endswith(
        "/django_cogworker/overview/"
    )
