"""The death handler of the project (`COGWORKER_DEATH_HANDLERS`)."""

from __future__ import annotations

from typing import Any

from partners.models import BuriedJob


def note_death(payload: dict[str, Any], error: BaseException) -> None:
    """Write down which job was given up, for those who have to look after it."""
    BuriedJob.objects.get_or_create(
        jid=payload["jid"],
        defaults={"job_class": payload["class"], "error": f"{type(error).__name__}: {error}"[:200]},
    )
