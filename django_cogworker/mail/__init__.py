"""Floor 7: Django's mails, sent by jobs.

    EMAIL_BACKEND = "django_cogworker.mail.EmailBackend"

`backend` is what Django calls, `letter` brings a message through a job's arguments and back, `job` sends it. In the
test modes messages come to `mail.outbox` when the job runs.
"""

from __future__ import annotations

from django_cogworker.mail.backend import EmailBackend
from django_cogworker.mail.job import SendEmail

__all__ = ["EmailBackend", "SendEmail"]
