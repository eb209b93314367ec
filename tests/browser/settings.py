"""Settings of the web server and the worker behind the browser."""

from __future__ import annotations

import os
from typing import Any

import django

from tests.browser.policy import POLICY
from tests.browser.themes import THEMES
from tests.project.settings import *  # noqa: F403
from tests.project.settings import DATABASES, INSTALLED_APPS, MIDDLEWARE

# `runserver` serves static files itself then.
DEBUG = True
INSTALLED_APPS = [*INSTALLED_APPS, "tests.browser"]
DATABASES = {"default": DATABASES["default"]}

theme = os.environ.get("COGWORKER_TEST_THEME", "")
if theme:
    # What themes bring would not pass the policy.
    app, further = THEMES[theme]
    INSTALLED_APPS = [app, *INSTALLED_APPS]
    globals().update(further)
elif django.VERSION >= (6, 0):
    SECURE_CSP = POLICY
    MIDDLEWARE = ["django.middleware.csp.ContentSecurityPolicyMiddleware", *MIDDLEWARE]
else:
    MIDDLEWARE = ["tests.browser.policy.Policy", *MIDDLEWARE]
# The language is the browser's.
MIDDLEWARE = [*MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]

# Beats, and with them what workers are asked for, come every second.
COGWORKER_ORPHAN_THRESHOLD = 6
COGWORKER_PERIODIC: dict[str, Any] = {
    "noon": {"job": "tests.project.jobs.Append", "cron": "0 12 * * *", "args": ["at noon"]},
    "hourly": {"job": "tests.browser.jobs.Tells", "cron": "0 * * * *", "tz": "Europe/Paris"},
}
