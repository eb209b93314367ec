"""A mail message on its way through a job: its fields, and not the text that would be sent.

So the backend that sends it gets what the project wrote, with all that services want to know (tags, templates, merge
data: any attribute that can travel does). Attachments that are parts of mail already travel as bytes and come back
as parts. A class of the project's own is found again by the rule for arguments (`payload/known_types`).
"""

from __future__ import annotations

import email
import email.policy
from collections.abc import Mapping, Sequence
from email.charset import Charset
from email.headerregistry import Address, Group
from email.message import Message, MIMEPart
from email.mime.base import MIMEBase
from typing import Any

from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.core.mail.message import EmailAlternative, EmailAttachment
from django.utils.functional import Promise

from django_cogworker.exceptions import ArgumentError
from django_cogworker.payload import known_types

#: Django's own classes, by the name under which they travel.
_PLAIN: dict[str, type[EmailMessage]] = {
    "EmailMessage": EmailMessage,
    "EmailMultiAlternatives": EmailMultiAlternatives,
}
#: What `__init__` takes.
_TEXTS = ("subject", "body", "from_email")
_LISTS = ("to", "cc", "bcc", "reply_to")
#: What is brought over in a way of its own, or stays here.
_OTHER = {*_TEXTS, *_LISTS, "extra_headers", "attachments", "alternatives", "encoding"}
_STAYS = {"connection", "_connection"}

# What begins a part in wire form.
_FILE, _PART, _OLD_PART, _MESSAGE = "file", "part", "mime", "message"


class _OldPart(MIMEBase):
    """A part that was read from bytes, of the class by which Django up to 6.0 knows parts."""

    def __init__(self, *, policy: Any = email.policy.compat32) -> None:
        Message.__init__(self, policy=policy)


def packed(message: EmailMessage) -> dict[str, Any]:
    """The message as an argument of a job. Raises `ArgumentError`, or as Django does where a header has two lines."""
    _check_headers(message)
    found: dict[str, Any] = {"kind": _kind_of(message)}
    found |= {name: _text(getattr(message, name)) for name in _TEXTS}
    found |= {name: list(map(_text, getattr(message, name))) for name in _LISTS}
    found["headers"] = {str(name): _text(value) for name, value in message.extra_headers.items()}
    found["attachments"] = [_packed_part(each) for each in message.attachments]
    if isinstance(message, EmailMultiAlternatives):
        found["alternatives"] = [list(map(_text, each)) for each in message.alternatives]
    found["encoding"] = _packed_charset(message.encoding)
    own = {n: _text(v) for n, v in vars(message).items() if n not in _OTHER and n not in _STAYS}
    if own:
        found["own"] = own
    return {name: value for name, value in found.items() if value not in ("", [], {}, None)}


def unpacked(found: Mapping[str, Any]) -> EmailMessage:
    """The message again."""
    kind = found["kind"]
    wanted = _PLAIN[kind] if kind in _PLAIN else known_types.find(kind)
    base = EmailMultiAlternatives if issubclass(wanted, EmailMultiAlternatives) else EmailMessage
    message = base(**{name: found[name] for name in (*_TEXTS, *_LISTS, "headers") if name in found})
    if wanted is not base:
        message.__class__ = wanted  # its `__init__` may take what it likes
    message.attachments = [_unpacked_part(each) for each in found.get("attachments", ())]
    if isinstance(message, EmailMultiAlternatives):
        message.alternatives = [EmailAlternative(*each) for each in found.get("alternatives", ())]
    if "encoding" in found:
        message.encoding = _unpacked_charset(found["encoding"])
    for name, value in found.get("own", {}).items():
        setattr(message, name, value)
    return message


def _kind_of(message: EmailMessage) -> str:
    kind = type(message)
    if _PLAIN.get(kind.__name__) is kind:
        return kind.__name__
    return known_types.path_of(kind, "The message")


def _text(value: Any) -> Any:
    """Texts that are translated late or marked as safe become plain ones, and addresses their texts; all else stays."""
    if isinstance(value, (Promise, Address, Group)):
        value = str(value)
    return str.__str__(value) if isinstance(value, str) else value


def _check_headers(message: EmailMessage) -> None:
    """At the call, where Django would complain. What else is wrong with a header is found out when it is sent."""
    headers: dict[str, Sequence[Any]] = {
        "Subject": [message.subject],
        "From": [message.from_email],
        "To": message.to,
        "Cc": message.cc,
        "Bcc": message.bcc,
        "Reply-To": message.reply_to,
        **{str(name): [name, value] for name, value in message.extra_headers.items()},
    }
    for name, values in headers.items():
        for value in values:
            if any(each in str(value) for each in "\r\n"):
                raise _bad_header(f"A header cannot have two lines: {name} is {str(value)!r}.")


def _bad_header(text: str) -> ValueError:
    from django.core.mail import message

    kind: type[ValueError] = getattr(message, "BadHeaderError", ValueError)
    return kind(text)


def _packed_part(attachment: Any) -> list[Any]:
    if isinstance(attachment, MIMEBase):
        return [_OLD_PART, attachment.as_bytes()]
    if isinstance(attachment, MIMEPart):
        return [_PART, attachment.as_bytes()]
    name, content, kind = attachment
    if isinstance(content, EmailMessage):
        content = content.message()
    if isinstance(content, Message):
        return [_MESSAGE, _text(name), content.as_bytes(), _text(kind)]
    if isinstance(content, (bytearray, memoryview)):
        content = bytes(content)
    if not isinstance(content, (str, bytes)):
        raise ArgumentError(
            f"The attachment {name!r} holds a {type(content).__qualname__}; it takes bytes, text or a message."
        )
    return [_FILE, _text(name), _text(content), _text(kind)]


def _unpacked_part(found: list[Any]) -> Any:
    kind, *rest = found
    if kind == _OLD_PART:
        return email.message_from_bytes(rest[0], _OldPart)
    if kind == _PART:
        return email.message_from_bytes(rest[0], policy=email.policy.default)
    name, content, mimetype = rest
    if kind == _MESSAGE:
        content = email.message_from_bytes(content, policy=email.policy.default)
    return EmailAttachment(name, content, mimetype)


def _packed_charset(encoding: Any) -> Any:
    if not isinstance(encoding, Charset):
        return _text(encoding)
    return [
        encoding.input_charset,
        encoding.header_encoding,
        encoding.body_encoding,
        encoding.output_charset,
    ]


def _unpacked_charset(found: Any) -> Any:
    if not isinstance(found, list):
        return found
    charset = Charset(found[0])
    charset.header_encoding, charset.body_encoding, charset.output_charset = found[1:]
    return charset
