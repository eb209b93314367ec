"""The app asks the database while it is loaded, where the environment says so, and stays connected."""

from __future__ import annotations

import os

from django.apps import AppConfig
from django.db import connection

PRELOAD_VARIABLE = "COGWORKER_TEST_PRELOAD"


class DatabasesConfig(AppConfig):
    name = "tests.databases"
    label = "databases"

    def ready(self) -> None:
        if os.environ.get(PRELOAD_VARIABLE):
            with connection.cursor() as cursor:
                cursor.execute("select 1")
