"""Settings of the benchmark of the pages: those of the tests, which have an admin, and many periodic entries."""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as APPS

INSTALLED_APPS = [
    "benchmarks.project",
    *(each for each in APPS if not each.startswith("tests.")),
]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
COGWORKER_REDIS = os.environ.get("COGWORKER_REDIS_URL")
COGWORKER_PERIODIC = {
    f"entry-{number}": {
        "job": "benchmarks.project.jobs.Stamp",
        "cron": ("0 3 * * *", "*/5 * * * *", "30 8 * * 1-5", "0 0 1 * *")[number % 4],
        "tz": ("UTC", "Europe/Paris")[number % 2],
        "args": [number],
    }
    for number in range(100)
}
