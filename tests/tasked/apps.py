from __future__ import annotations

import os

from django.apps import AppConfig


class TaskedConfig(AppConfig):
    name = "tests.tasked"

    def ready(self) -> None:
        if os.environ.get("COGWORKER_TEST_SIGNALS"):
            from tests.tasked.tasks import log_signals

            log_signals()
