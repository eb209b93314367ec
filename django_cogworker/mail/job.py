"""The job that sends one mail.

Its mailer is the one that the backend's `OPTIONS` name (`MAILERS`, from Django 6.1), else the class that
`COGWORKER_EMAIL_BACKEND` names; in the test modes Django's outbox. A mail that is tried again has the `Message-ID` of
the first time, made of the job's id, so that a mailbox knows it again.
"""

from __future__ import annotations

from typing import Any

from django.core import mail
from django.core.mail import DNS_NAME, EmailMessage
from django.core.mail.backends.base import BaseEmailBackend
from django.utils.module_loading import import_string

from django_cogworker.client.transport import is_test_mode
from django_cogworker.conf import get_config
from django_cogworker.exceptions import ConfigurationError
from django_cogworker.jobs.base import Job
from django_cogworker.mail.letter import unpacked

OUTBOX = "django.core.mail.backends.locmem.EmailBackend"


class SendEmail(Job):
    """Send one mail."""

    def perform(self, letter: dict[str, Any], mailer: str | None = None) -> int:
        message = unpacked(letter)
        self._identify(message)
        sent = _sender(mailer).send_messages([message])
        return int(sent or 0)

    def _identify(self, message: EmailMessage) -> None:
        if "message-id" not in {name.lower() for name in message.extra_headers}:
            message.extra_headers["Message-ID"] = f"<{self.jid}@{DNS_NAME}>"


def _sender(mailer: str | None) -> BaseEmailBackend:
    """Raises `ConfigurationError` where mails would come back to the queue for ever."""
    if is_test_mode():
        return _made(OUTBOX)
    if mailer is None:
        name = f"COGWORKER_EMAIL_BACKEND ({get_config().email_backend!r})"
        sender = _made(get_config().email_backend)
    else:
        name = f"The mailer {mailer!r} in MAILERS"
        mailers: Any = mail.mailers  # type: ignore[attr-defined,unused-ignore]
        sender = mailers[mailer]
    _refuse_a_circle(sender, name)
    return sender


def check_sender(path: str) -> None:
    """Raise `ConfigurationError` where the class with that path cannot send mails."""
    _refuse_a_circle(_found(path), f"COGWORKER_EMAIL_BACKEND ({path!r})")


def _refuse_a_circle(sender: Any, name: str) -> None:
    if getattr(sender, "makes_jobs", False):
        raise ConfigurationError(f"{name} makes a job of each mail again; name one that sends.")


def _found(path: str) -> Any:
    try:
        return import_string(path)
    except ImportError as error:
        raise ConfigurationError(f"COGWORKER_EMAIL_BACKEND is {path!r}: {error}.") from error


def _made(path: str) -> BaseEmailBackend:
    kind = _found(path)
    # From Django 6.1 on its own backends want to be told that they belong to no entry of MAILERS.
    backend: BaseEmailBackend = (
        kind(alias=None) if kind.__module__.startswith("django.") else kind()
    )
    return backend
