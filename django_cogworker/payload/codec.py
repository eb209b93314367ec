"""A job as bytes: JSON in ASCII, so that any text, lone surrogates included, goes there and back.

`enqueued_at` is stamped on the encoded bytes: a push that waits for a commit is encoded at once
(the caller may change its arguments afterwards) and stamped when it is really pushed.
"""

from __future__ import annotations

import json
from typing import Any

from django_cogworker import clock
from django_cogworker.exceptions import (
    InvalidPayload,
    UnencodableArgument,
    UnknownFormat,
    UnparseablePayload,
)

FORMAT = 1

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0.0:
        raise ValueError(f"the number {text} is too large")
    return number


# What can be read can be written again: `NaN` and `1e999` could not.
_decode = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite).decode


def encode(payload: dict[str, Any]) -> bytes:
    """The payload as bytes. Raises `InvalidPayload` where a field cannot be encoded."""
    try:
        return _encode(payload).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        field = next((each for each in payload if not _can_encode(payload[each])), None)
        if field in ("args", "kwargs"):
            path = f"{field}{_path_to_culprit(payload[field])}"
            raise UnencodableArgument(f"{path} cannot be encoded: {error}.") from None
        what = "as a whole" if field is None else f"field {field!r}"
        raise InvalidPayload(f"The payload {what} cannot be encoded: {error}.") from None


def _can_encode(value: Any) -> bool:
    try:
        _encode(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _path_to_culprit(value: Any, depth: int = 0) -> str:
    """Such as `[0]['due']`; it stops at what holds itself."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    for key, each in items:
        if depth < 100 and not _can_encode(each):
            return f"[{key!r}]{_path_to_culprit(each, depth + 1)}"
    return ""


def stamp(encoded: bytes, now: float | None = None) -> bytes:
    """The encoded job with `enqueued_at` set to now."""
    return b'%b,"enqueued_at":%.6f}' % (encoded[:-1], clock.now() if now is None else now)


def decode_on(queue: str, raw: bytes) -> dict[str, Any]:
    """The job in `raw`, which lay on `queue`: where it names none, that one is its queue from now on.

    Without it the job would be lost on its way back from a wait. Raises as `decode` does.
    """
    payload = decode(raw)
    if payload.get("queue") != queue and not queue_of(payload):
        payload["queue"] = queue
    return payload


def queue_of(payload: dict[str, Any]) -> str:
    """The queue that a job names; empty where it names none, or none that Redis could have."""
    own = payload.get("queue")
    if not isinstance(own, str):
        return ""
    try:
        own.encode()
    except UnicodeEncodeError:
        return ""
    return own


def decode(raw: bytes) -> dict[str, Any]:
    """The job in `raw`. Raises `UnparseablePayload` where that is not one.

    A format version that we do not know is no error here; see `check_format`.
    """
    try:
        payload = _decode(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UnparseablePayload(f"Not JSON: {error}") from None
    if type(payload) is not dict:
        raise UnparseablePayload(f"Not a JSON object but a {type(payload).__name__}.")
    if not isinstance(payload.get("class"), str) or not payload["class"]:
        raise UnparseablePayload("The field 'class' is missing or not a text.")
    if not isinstance(payload.get("jid"), str) or not payload["jid"]:
        raise UnparseablePayload("The field 'jid' is missing or not a text.")
    if type(payload.get("args", [])) is not list:
        raise UnparseablePayload("The field 'args' is not a list.")
    if type(payload.get("kwargs", {})) is not dict:
        raise UnparseablePayload("The field 'kwargs' is not an object.")
    return payload


def check_format(payload: dict[str, Any]) -> None:
    """Raise `UnknownFormat` for a payload that a newer version wrote."""
    version = payload.get("v", FORMAT)
    if version != FORMAT:
        raise UnknownFormat(
            f"The job is in wire format {version!r}; this version of django-cogworker reads {FORMAT}."
        )
