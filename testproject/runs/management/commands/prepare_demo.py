from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandParser

from catalog.samples import make_products


class Command(BaseCommand):
    help = "Make the shop's sample data and a login for the admin. May be repeated."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--username", default="admin")
        parser.add_argument("--password", required=True)

    def handle(self, *args: Any, username: str, password: str, **options: Any) -> None:
        settings.EMAIL_FILE_PATH.mkdir(parents=True, exist_ok=True)
        user, _ = User.objects.get_or_create(
            username=username, defaults={"email": "admin@example.com"}
        )
        user.is_staff = user.is_superuser = True
        user.set_password(password)
        user.save()
        make_products()
