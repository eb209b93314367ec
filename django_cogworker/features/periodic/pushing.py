"""The push of a slot's job: an ordinary push, and the claim of the slot with it."""

from __future__ import annotations

from typing import Any

from django_cogworker import client
from django_cogworker.features.periodic.entry import Entry
from django_cogworker.features.periodic.state import Claim, claiming


def push_slot(entry: Entry, slot: int, left_out: tuple[dict[str, Any], ...] = ()) -> str | None:
    """Push the job of a slot, with lines about those left out before it; its jid, or `None` where the claim
    was refused.
    """
    payload = {**entry.payload(), "periodic": entry.name, "slot": slot}
    if entry.unique_run:
        payload["periodic_lock"] = True
    token = claiming.set(Claim(entry, left_out))
    try:
        return client.enqueue(payload, on_commit=False)
    finally:
        claiming.reset(token)
