"""Without an API for tasks the package `django_cogworker.tasks` can be imported all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import importlib.util, sys
real = importlib.util.find_spec
away = ("django.tasks", "django_tasks")
importlib.util.find_spec = lambda name, *args: None if name in away else real(name, *args)

import django_cogworker.tasks as tasks  # as Celery's autodiscovery would, before anything is configured
from django.conf import settings

settings.configure(INSTALLED_APPS=["django_cogworker"], COGWORKER_TESTING="fake")
import django

django.setup()
assert not [each for each in sys.modules if each.startswith("django_cogworker.tasks.")]

from django_cogworker.client import push

push({"class": "shop.tasks.add", "task": "default", "track": True})
try:
    tasks.CogworkerBackend
except django.core.exceptions.ImproperlyConfigured as error:
    print(error)
"""


def test_the_package_is_imported_and_the_backend_says_what_is_missing():
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": ""},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert ended.returncode == 0, ended.stderr
    assert "pip install 'django-cogworker[tasks]'" in ended.stdout
