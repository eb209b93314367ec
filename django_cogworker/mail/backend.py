"""The email backend that makes a job of each message.

All messages of one call are pushed in bulk, inside a transaction when it commits. What is accepted is counted, not
what was sent: that is the job's part, and so are retries. `fail_silently` keeps the caller from errors of the push
(they are logged); it makes no job give up.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend

from django_cogworker.conf import get_config
from django_cogworker.exceptions import CogworkerError, ConfigurationError
from django_cogworker.mail.job import SendEmail, check_sender
from django_cogworker.mail.letter import packed
from django_cogworker.mail.mailers import check_mailer, mailer_options

logger = logging.getLogger("django_cogworker")

#: The error of a push is being logged: a handler that mails errors must not begin again.
_complaining: ContextVar[bool] = ContextVar("cogworker_mail_complaining", default=False)


class EmailBackend(BaseEmailBackend):
    """For `EMAIL_BACKEND`, or as `BACKEND` of an entry of `MAILERS` with the alias of a mailer that sends."""

    #: So that nobody names it as the one that sends.
    makes_jobs = True

    def __init__(
        self,
        fail_silently: bool = False,
        *,
        mailer: str | None = None,
        job: Mapping[str, Any] | None = None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> None:
        """`mailer`: the alias in `MAILERS` that the job sends with. `job`: options of the job, on top of those of
        `COGWORKER_EMAIL_OPTIONS`. Raises `ConfigurationError`, also where the job could never send: the call knows
        it already, and 25 attempts would find out nothing else.
        """
        super().__init__(**kwargs)
        self.fail_silently = fail_silently
        self._mailer = mailer
        if username or password:
            raise ConfigurationError(
                "auth_user and auth_password cannot be given to a mail that a job sends: they would lie in Redis. "
                "Configure the backend that sends."
            )
        alias = kwargs.get("alias")
        if alias is not None and mailer is None:
            raise ConfigurationError(
                f"MAILERS[{alias!r}] needs OPTIONS with 'mailer': the alias of the mailer that its jobs send with."
            )
        if mailer is None:
            check_sender(get_config().email_backend)
        else:
            check_mailer(mailer, alias)
        self._call = _call(job, alias)

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Enqueue a job for each message that has recipients; how many were accepted."""
        if _complaining.get():
            return 0
        try:
            return self._enqueue([each for each in email_messages if each.recipients()])
        except (CogworkerError, ValueError):
            if not self.fail_silently:
                raise
            token = _complaining.set(True)
            try:
                logger.exception("Mails could not be enqueued.")
            finally:
                _complaining.reset(token)
            return 0

    def _enqueue(self, messages: Sequence[EmailMessage]) -> int:
        more = {} if self._mailer is None else {"mailer": self._mailer}
        calls: list[dict[str, Any]] = [{"letter": packed(each), **more} for each in messages]
        if len(calls) == 1:  # its error says nothing of items
            return int(self._call.perform_async(**calls[0]) is not None)
        return sum(each is not None for each in self._call.perform_bulk(calls))


def _call(job: Mapping[str, Any] | None, alias: str | None) -> Any:
    """The job with its options. Raises `ConfigurationError`, which names the entry of `MAILERS` whose they are."""
    call = SendEmail.set(**get_config().email_options)
    if job is None:
        return call
    owner = f"{mailer_options(alias)}['job']"
    given: Any = job
    if not isinstance(given, Mapping) or not all(isinstance(each, str) for each in given):
        raise ConfigurationError(f"{owner} is {job!r}; allowed is a dict of options of jobs.")
    try:
        return SendEmail.set(**{**get_config().email_options, **job})
    except ConfigurationError as error:
        raise type(error)(f"{owner}: {error}") from None
