"""Written for `django.tasks`, so it would run on another backend just as well. Here it is a job like the others."""

from __future__ import annotations

from typing import Any

from django.db.models import Sum

from django_cogworker.tasks import task
from orders.models import Order


@task(queue_name="low", retry=3, result_ttl=3600, takes_context=True)
def count_points(context: Any, email: str) -> dict[str, int]:
    """One point for each whole euro. The result says how many, and in which attempt that was found."""
    spent = Order.objects.filter(email=email).aggregate(spent=Sum("total", default=0))["spent"]
    return {"points": int(spent), "attempt": context.attempt}
