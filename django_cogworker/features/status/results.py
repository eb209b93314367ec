"""Return values on their way into the status: in wire form, as arguments are, and not without a bound."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django_cogworker.conf import get_config
from django_cogworker.exceptions import CogworkerError, PayloadTooLarge
from django_cogworker.features.status.record import OWN, in_wire_form
from django_cogworker.payload.arguments import pack

logger = logging.getLogger("django_cogworker")


def packed(value: Any, what: str) -> str:
    """The value as text. Raises `ArgumentError` or `PayloadTooLarge`, which name `what`."""
    text = in_wire_form(pack(value, what))
    limit = get_config().payload_max
    if len(text) > limit:
        raise PayloadTooLarge(
            f"{what} takes {len(text)} bytes; COGWORKER_PAYLOAD_MAX allows {limit}."
        )
    return text


def stored(fields: Mapping[str, Any]) -> dict[str, str]:
    """What `self.store()` was given, as fields of the hash."""
    return {
        OWN + name.encode("utf-8", "replace").decode(): packed(value, f"store({name}=…)")
        for name, value in fields.items()
    }


def kept(payload: Mapping[str, Any], result: Any) -> dict[str, str]:
    """The fields for a return value. One that cannot be kept fails no job: it is logged and said to whoever asks."""
    if "result_ttl" not in payload:
        return {}
    try:
        return {"result": packed(result, "the return value"), "result_error": ""}
    except (CogworkerError, ValueError, RecursionError) as error:
        jid = payload["jid"]
        logger.error(
            "The result of %s %s cannot be kept: %s",
            payload["class"],
            jid,
            error,
            extra={"jid": jid, "job_class": payload["class"]},
        )
        return {"result": "", "result_error": str(error)[:1000]}
