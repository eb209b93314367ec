"""Settings of the benchmark workers. Where Redis is comes from COGWORKER_REDIS_URL."""

from __future__ import annotations

import os

SECRET_KEY = "only for benchmarks"
USE_TZ = True
INSTALLED_APPS = ["benchmarks.project", "django_cogworker"]
# Off, it shows what the history costs.
COGWORKER_HISTORY = os.environ.get("BENCH_HISTORY", "on") == "on"
DATABASES: dict[str, dict[str, str]] = {}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"stderr": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("BENCH_LOG", "ERROR")},
}
