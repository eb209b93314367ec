"""The Django app: registers the checks, the test modes and the features, and finds the project's
jobs.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _


def _call(path: str) -> Any:
    """Import on first use: production never loads the test modes."""
    return import_string(path)()


class CogworkerConfig(AppConfig):
    name = "django_cogworker"
    label = "django_cogworker"
    verbose_name = _("Background jobs")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django_cogworker import checks as own_checks
        from django_cogworker import conf
        from django_cogworker.client import transport
        from django_cogworker.features import registry as features
        from django_cogworker.jobs import registry

        checks.register(own_checks.check_settings, own_checks.TAG)
        checks.register(own_checks.check_middleware, own_checks.TAG)
        checks.register(own_checks.check_redis, own_checks.TAG)
        checks.register(own_checks.check_other_apps, own_checks.TAG)
        checks.register(own_checks.check_runserver, own_checks.TAG)
        checks.register(own_checks.check_databases, own_checks.WORKER_TAG, deploy=True)
        for mode in ("fake", "inline"):
            path = f"django_cogworker.testing.{mode}.the_transport"
            transport.register_transport(mode, partial(_call, path))
        checks.register(own_checks.check_mail, own_checks.TAG)
        features.load()
        import_module("django_cogworker.mail.job")  # its job must be known wherever jobs run
        registry.autodiscover()
        if conf.wants_worker_in_runserver():
            from django_cogworker.management import beside

            beside.attach()
