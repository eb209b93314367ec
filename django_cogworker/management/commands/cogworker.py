"""`manage.py cogworker …`: look and steer from the command line. Each reading verb has `--json`.

All it says is English, as of all commands of Django, so that scripts can rely on it.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import redis
from django.core.management.base import BaseCommand, CommandError
from django.utils import translation

from django_cogworker.exceptions import CogworkerError
from django_cogworker.management.verbs.registry import BY_NAME, VERBS


class Command(BaseCommand):
    help = "Shows and steers queues and workers."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        for each in VERBS:
            each.add_arguments(verbs.add_parser(each.name, help=each.help, description=each.help))

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with translation.override(None):
                BY_NAME[options["verb"]](self.stdout.write).run(options)
        except CogworkerError as error:
            raise CommandError(str(error)) from error
        except redis.ResponseError as error:
            raise CommandError(f"Redis refuses: {error}") from error
        except (redis.RedisError, OSError) as error:
            raise CommandError(f"Redis cannot be reached: {error}") from error
