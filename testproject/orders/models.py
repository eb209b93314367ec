"""Orders, and the daily digest for the owner."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from catalog.models import Product


class Order(models.Model):
    """A few pieces of one product for one customer."""

    class State(models.TextChoices):
        PLACED = "placed"
        ANNOUNCED = "announced", "announced to the carrier"
        UNPAID = "unpaid", "payment refused for good"

    email = models.EmailField()
    product = models.ForeignKey(Product, models.PROTECT)
    pieces = models.PositiveIntegerField(default=1)
    total = models.DecimalField(max_digits=10, decimal_places=2)
    state = models.CharField(max_length=12, choices=State, default=State.PLACED)
    placed_at = models.DateTimeField(auto_now_add=True)
    reserved = models.BooleanField(default=False, help_text="Taken off the stock.")
    receipt_sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"Order {self.pk}"


class Digest(models.Model):
    """What was sold on one day."""

    day = models.DateField(unique=True)
    orders = models.PositiveIntegerField()
    turnover = models.DecimalField(max_digits=12, decimal_places=2)
    made_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"Digest of {self.day}"
