"""Every error that django-cogworker raises of its own accord.

One base, `CogworkerError`, so that a caller can tell our errors from those of the job, of Redis or
of Django. An error that is also a well-known Python error (a wrong type, a wrong value) says so by
its second base, so plain `except TypeError` keeps working.
"""

from __future__ import annotations


class CogworkerError(Exception):
    """Base of all errors of this package."""


class ConfigurationError(CogworkerError):
    """A setting or an option has a value that cannot be used."""


class UnknownOption(ConfigurationError, TypeError):
    """A job class names an option that nobody declared."""


class InvalidOption(ConfigurationError, ValueError):
    """A job class gives a declared option a value that it cannot take."""


class InvalidPeriodicEntry(ConfigurationError, ValueError):
    """A periodic entry names something that cannot be used: a cron line, a zone, a job, an option."""


class UnknownPeriodicEntry(CogworkerError, LookupError):
    """No periodic entry has that name here."""


class InvalidPayload(CogworkerError, ValueError):
    """A payload given to the low-level client lacks something or has a value of the wrong type."""


class ArgumentError(CogworkerError, TypeError):
    """A job's arguments do not fit its signature, or cannot survive the way through Redis."""


class UnencodableArgument(ArgumentError, InvalidPayload):
    """An argument of an allowed type has a value that JSON cannot hold, such as a number of 5,000
    digits.
    """


class PayloadTooLarge(CogworkerError, ValueError):
    """An encoded job is larger than `COGWORKER_PAYLOAD_MAX`."""


class InvalidQueueName(CogworkerError, ValueError):
    """A text that cannot be the name of a queue."""


class UnparseablePayload(CogworkerError, ValueError):
    """What lies in Redis is not a job: not JSON, or not an object with a class and a jid."""


class UnknownJob(CogworkerError, LookupError):
    """No job class of that name is registered in this process."""


class UnknownFormat(CogworkerError, ValueError):
    """The job was written in a wire format that this version cannot read."""


class MissingRow(CogworkerError, LookupError):
    """A job's argument is a model instance whose row is gone.

    The option `missing_row` of the job says what becomes of it. `jid`: of the job whose argument it is; empty where
    the row was asked for by hand.
    """

    jid = ""


class PushError(CogworkerError):
    """A job could not be enqueued.

    `accepted` and `refused` hold jids. `ambiguous` is true where Redis went away before it
    answered: the job may be there all the same.
    """

    def __init__(
        self,
        message: str,
        *,
        accepted: list[str] | None = None,
        refused: list[str] | None = None,
        ambiguous: bool = False,
    ) -> None:
        super().__init__(message)
        self.accepted = accepted or []
        self.refused = refused or []
        self.ambiguous = ambiguous


class InvalidQuery(CogworkerError, ValueError):
    """A look at what is kept asks for something that cannot be: a page of -1 entries, an unknown status."""


class DuplicateJob(CogworkerError):
    """A unique job was not enqueued, because another one has its lock; `holder` is that one's jid.

    Raised only where the job says `on_conflict="raise"`.
    """

    def __init__(self, message: str, *, holder: str) -> None:
        super().__init__(message)
        self.holder = holder


class EmbeddedServerError(CogworkerError):
    """The embedded server cannot be found, started or stopped."""


class NoJobContext(CogworkerError, RuntimeError):
    """What only a running job knows (`current_job()`, `self.jid`) was asked outside one."""


class TestModeError(CogworkerError, RuntimeError):
    """A helper of the test modes was used outside its mode."""

    __test__ = False  # not a test class, whatever pytest thinks of its name


class EmptyQueueError(TestModeError):
    """`perform_one` was called although no job of that class is waiting."""


class NotTrackedError(CogworkerError, LookupError):
    """Nothing is known of the job: it is not tracked, was never pushed, or its status has expired."""


class NoResultError(CogworkerError, LookupError):
    """The job keeps no return value, so there is nothing to wait for."""


class ResultTimeout(CogworkerError, TimeoutError):
    """The job did not end within the time that somebody waited for it."""


class JobFailedError(CogworkerError):
    """A job whose result somebody waits for has ended without success.

    Also what the death hooks get for a job whose failure was filed by another worker than the one that
    ran it. The text is that of the job's own error, whose class the job's record names.
    """


class JobTimeout(CogworkerError, TimeoutError):
    """A job ran longer than its `timeout`. It is raised inside the job, at the limit."""


class JobCancelled(CogworkerError):
    """Somebody cancelled the job: raised by `self.at()` of a running one, which ends it without a
    failure, and by waiting for its result.
    """


class JobOrphanedError(CogworkerError):
    """A job was buried because the workers that ran it died; an at-most-once job also because its
    worker stopped.
    """
