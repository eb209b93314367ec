"""Words for people for what Redis and the API have in words for programs: states, ends of runs, texts of ours.

What lies in Redis is always English: whoever wrote it does not know who will read it. It is translated where it is
read. A word that is not known here, such as one of an app's own feature, is shown as it is.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext, gettext_lazy

_WORDS = {
    "queue": gettext_lazy("enqueued"),
    "queued": gettext_lazy("enqueued"),
    "enqueued": gettext_lazy("enqueued"),
    "schedule": gettext_lazy("scheduled"),
    "scheduled": gettext_lazy("scheduled"),
    "retry": gettext_lazy("retrying"),
    "retrying": gettext_lazy("retrying"),
    "worker": gettext_lazy("running"),
    "working": gettext_lazy("running"),
    "waiting": gettext_lazy("put off"),
    "dead": gettext_lazy("dead"),
    "killed": gettext_lazy("dead"),
    "finished": gettext_lazy("succeeded"),
    "complete": gettext_lazy("succeeded"),
    "success": gettext_lazy("succeeded"),
    "failed": gettext_lazy("given up"),
    "discarded": gettext_lazy("given up"),
    "cancelled": gettext_lazy("cancelled"),
    "expired": gettext_lazy("expired"),
    "replaced": gettext_lazy("replaced by a newer one"),
    "unknown": gettext_lazy("unknown"),
}


def word(name: Any) -> str:
    """A state or an end, in the active language."""
    return str(_WORDS.get(str(name), name))


def in_language(text: Any) -> str:
    """A text that is marked by `gettext_noop` where it was made, in the active language."""
    return gettext(str(text)) if text else ""
