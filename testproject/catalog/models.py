"""Products, the small versions of their pictures, and the imports of price lists."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Product(models.Model):
    """Something to buy."""

    sku = models.CharField(max_length=20, unique=True)
    name = models.CharField(max_length=100)
    price = models.DecimalField(max_digits=8, decimal_places=2)
    stock = models.PositiveIntegerField(default=0)
    photo = models.FileField(upload_to="photos", blank=True)

    class Meta:
        ordering: ClassVar = ["sku"]

    def __str__(self) -> str:
        return self.name


class Thumbnail(models.Model):
    """A small version of a product's photo."""

    product = models.ForeignKey(Product, models.CASCADE, related_name="thumbnails")
    size = models.PositiveIntegerField(help_text="Longest side in pixels.")
    file = models.CharField(max_length=200)
    width = models.PositiveIntegerField()
    height = models.PositiveIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["product", "size"], name="one_thumbnail_per_size")
        ]

    def __str__(self) -> str:
        return f"{self.product_id} at {self.size} px"


class Import(models.Model):
    """One price list of a supplier, a CSV file with `sku,name,price,stock`."""

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"

    file = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    rows = models.PositiveIntegerField(default=0)
    rejected = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.file
