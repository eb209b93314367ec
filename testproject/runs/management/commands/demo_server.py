from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from django_cogworker.exceptions import EmbeddedServerError
from django_cogworker.store.embedded import ensure_server, stop_server


class Command(BaseCommand):
    help = (
        "Start or stop the embedded server. Does nothing where COGWORKER_REDIS names another one."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("what", choices=["start", "stop"])

    def handle(self, *args: Any, what: str, **options: Any) -> None:
        if settings.COGWORKER_REDIS != "embedded":
            return
        try:
            if what == "start":
                ensure_server(settings.COGWORKER_EMBEDDED_DIR)
            else:
                stop_server(settings.COGWORKER_EMBEDDED_DIR)
        except EmbeddedServerError as error:
            raise CommandError(str(error)) from error
