"""A message of the project's own, whose `__init__` is not Django's."""

from __future__ import annotations

from typing import Any

from django.core.mail import EmailMessage


class Invoice(EmailMessage):
    tags: list[Any]

    def __init__(self, number: int, to: list[str]) -> None:
        super().__init__(f"Invoice {number}", "Please pay.", "shop@example.com", to)
        self.number = number
