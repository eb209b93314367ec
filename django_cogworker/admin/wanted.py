"""What people fill into the forms of actions, and what they are told where it cannot be."""

from __future__ import annotations

from django.utils.translation import gettext as _

from django_cogworker.exceptions import InvalidQuery
from django_cogworker.parsers import check_queue_name


def named_queue(name: str) -> str:
    """The name, if a queue can have it. Raises `InvalidQuery` in the language of whoever asks."""
    try:
        return check_queue_name(name)
    except ValueError:
        text = _(
            "“%(queue)s” can be no name of a queue: it has 1 to 200 characters, no spaces among them, and does not "
            "end in “:priority” or “:tokens”."
        )
        raise InvalidQuery(text % {"queue": name}) from None
