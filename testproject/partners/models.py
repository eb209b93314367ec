"""What we said to partners, and what they answered."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from orders.models import Order


class PartnerCall(models.Model):
    """One call to a partner's service."""

    order = models.ForeignKey(Order, models.CASCADE, related_name="calls")
    partner = models.CharField(max_length=20)
    attempt = models.PositiveIntegerField()
    answer = models.CharField(max_length=100)
    ok = models.BooleanField()
    called_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"{self.partner} about order {self.order_id}: {self.answer}"


class BuriedJob(models.Model):
    """A job that was given up, as the death handler wrote it down."""

    jid = models.CharField(max_length=64, unique=True)
    job_class = models.CharField(max_length=200)
    error = models.CharField(max_length=200)
    buried_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.job_class}: {self.error}"
