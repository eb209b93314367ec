"""What an error from redis-py means for us.

Three questions matter: is Redis away or unable to serve for now (go on trying, say it once)? Did
the command perhaps reach it (repeat only what is idempotent)? Does the server refuse scripts (work
without them)?
"""

from __future__ import annotations

import re

import redis.exceptions as rex

from django_cogworker.exceptions import EmbeddedServerError

#: First words of error replies that mean "not now": the same call may succeed in a moment.
_PASSING_REPLIES = (
    "READONLY",
    "LOADING",
    "MASTERDOWN",
    "TRYAGAIN",
    "BUSY",
    "CLUSTERDOWN",
    "NOREPLICAS",
    "MISCONF",
    "OOM",
)

#: In redis-py's words for "no connection was had, so nothing was sent"; it has no class for that.
_NOT_SENT = ("connecting to ", "No connection available")

#: A refusal of the script commands themselves, not of a command or key inside a script.
_NO_SCRIPTS = re.compile(
    r"(?:unknown command|no permissions to run the) ['`]?(?:evalsha|eval|script)\b", re.IGNORECASE
)


def first_word(error: BaseException) -> str:
    """The first word of an error reply, also where the server wrapped it in a script error."""
    text = str(error)
    for mark in ("ERR Error running script", "Error running script"):
        if text.startswith(mark):
            text = text.rpartition(": ")[2]
    return text.lstrip("-@").split(" ", 1)[0]


def is_unavailable(error: BaseException) -> bool:
    """Whether Redis is away, or says that it cannot serve now.

    Wrong credentials count too: they are mended on the server's side, and the worker then goes on.
    """
    if isinstance(error, (rex.ConnectionError, rex.TimeoutError, OSError)):
        return True
    if isinstance(
        error,
        (rex.BusyLoadingError, rex.ReadOnlyError, rex.MasterDownError, rex.OutOfMemoryError),
    ):
        return True
    if isinstance(error, rex.ResponseError):
        # BUSYKEY and BUSYGROUP are answers to a wrong command, not a state of the server.
        return first_word(error) in _PASSING_REPLIES
    return False


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the server refused a write because it is at `maxmemory`."""
    return isinstance(error, rex.OutOfMemoryError) or (
        isinstance(error, rex.ResponseError) and first_word(error) == "OOM"
    )


def is_ambiguous(error: BaseException) -> bool:
    """Whether the command may have been carried out although it raised."""
    if isinstance(error, (rex.BusyLoadingError, rex.AuthenticationError, rex.MaxConnectionsError)):
        return False
    if isinstance(error.__cause__, EmbeddedServerError):
        return False
    if any(each in str(error) for each in _NOT_SENT):
        return False
    return isinstance(error, (rex.ConnectionError, rex.TimeoutError, OSError))


def refuses_scripts(error: BaseException) -> bool:
    """Whether the server does not know or does not allow scripts (an ACL, a renamed command)."""
    return isinstance(error, rex.ResponseError) and bool(_NO_SCRIPTS.search(str(error)))


def is_missing_script(error: BaseException) -> bool:
    return isinstance(error, rex.NoScriptError)
