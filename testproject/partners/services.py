"""The partners' services, or what stands for them in a demo that must not need a network."""

from __future__ import annotations


class CarrierBusy(Exception):
    """The carrier's service is overloaded; it may answer in a moment."""


class CardExpired(Exception):
    """The bank refuses, and will refuse again."""


def announce_parcel(order_id: int, attempt: int) -> str:
    """Every third order gets through at once, the others at the second or third attempt."""
    if attempt <= order_id % 3:
        raise CarrierBusy(f"503, try again (order {order_id}, attempt {attempt})")
    return f"PARCEL-{order_id:06}"


def charge_card(order_id: int) -> str:
    """Never works."""
    raise CardExpired(f"the card of order {order_id} has expired")
