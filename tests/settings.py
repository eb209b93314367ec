"""Settings of the test run itself. Cheap: SQLite in memory and the few apps that we need.

The Redis to use is set test by test, by the fixture `redis_url`.
"""

from __future__ import annotations

from typing import Any

SECRET_KEY = "only for tests"
USE_TZ = True
TIME_ZONE = "UTC"
ROOT_URLCONF = "tests.project.urls"
ALLOWED_HOSTS = ["*"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_cogworker",
    "tests.project",
    "tests.followed",
    "tests.guests",
]

MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES: dict[str, Any] = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
    # A second one, for pushes that wait for the commits of both.
    "other": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
}

STATIC_URL = "static/"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# Nobody listens there: a test that forgets to ask for a Redis fails at once instead of writing into
# the one that happens to run on this machine.
COGWORKER_REDIS = "redis://127.0.0.1:1/0"

# Any queue will do.
TASKS = {"default": {"BACKEND": "django_cogworker.tasks.CogworkerBackend", "QUEUES": []}}
