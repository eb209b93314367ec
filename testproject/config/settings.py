"""Settings of the test project. Whatever it writes goes below `var/`."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
VAR = Path(os.environ.get("SHOP_VAR", BASE_DIR / "var"))
VAR.mkdir(parents=True, exist_ok=True)

DEBUG = True
SECRET_KEY = "a demo has nothing to hide"
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", "testserver"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django_cogworker",
    "catalog",
    "orders",
    "partners",
    "runs",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]

ROOT_URLCONF = "config.urls"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
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

# Ten threads of a worker and the web server write into one SQLite file: WAL lets readers pass,
# IMMEDIATE takes the write lock at the start of a transaction, where waiting for it still works.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": VAR / "shop.sqlite3",
        "CONN_MAX_AGE": 600,
        "OPTIONS": {
            "timeout": 30,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"

STATIC_URL = "static/"
MEDIA_URL = "media/"
MEDIA_ROOT = VAR / "media"

EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
EMAIL_FILE_PATH = VAR / "mail"
DEFAULT_FROM_EMAIL = "shop@example.com"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": os.environ.get("SHOP_LOG_LEVEL", "INFO")},
}

# -- the jobs

COGWORKER_REDIS = os.environ.get("COGWORKER_REDIS", "embedded")
COGWORKER_EMBEDDED_DIR = VAR / "redis"
COGWORKER_QUEUES = {"critical": 3, "default": 2, "mail": 1, "low": 1}
COGWORKER_DEATH_HANDLERS = ["partners.deaths.note_death"]

# Django's own API for tasks: of Django 6, or its backport.
if any(find_spec(each) for each in ("django.tasks", "django_tasks")):
    INSTALLED_APPS.append("loyalty")
    TASKS = {
        "default": {
            "BACKEND": "django_cogworker.tasks.CogworkerBackend",
            "QUEUES": ["default", "low"],
        }
    }
