"""Settings of the worker processes that the tests start. The environment says what differs."""

from __future__ import annotations

import json
import os
from typing import Any

from tests.settings import *  # noqa: F403

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("COGWORKER_TEST_DB", ":memory:"),
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE"},
    }
}

COGWORKER_REDIS = os.environ["COGWORKER_REDIS_URL"]

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(levelname)s %(process)d %(threadName)s %(name)s: %(message)s"}
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {"django_cogworker": {"level": os.environ.get("COGWORKER_TEST_LOG_LEVEL", "INFO")}},
}

# Any further setting, such as {"COGWORKER_SHUTDOWN_TIMEOUT": 1}, as a JSON object.
globals().update(json.loads(os.environ.get("COGWORKER_TEST_SETTINGS", "{}")))
