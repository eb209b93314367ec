"""Models with all sorts of primary keys, and a manager that hides rows."""

from __future__ import annotations

import uuid

from django.db import models


class Visible(models.Manager["Book"]):
    def get_queryset(self) -> models.QuerySet[Book]:
        return super().get_queryset().filter(hidden=False)


class Book(models.Model):
    class Binding(models.TextChoices):
        PAPER = "p"
        CLOTH = "c"

    title = models.CharField(max_length=100)
    hidden = models.BooleanField(default=False)
    objects = Visible()


class Novel(Book):
    """Its primary key is that of its book."""


class Ticket(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)


class Seat(models.Model):
    pk = models.CompositePrimaryKey("row", "number")
    row = models.CharField(max_length=1)
    number = models.IntegerField()


class Atlas(Book):
    class Meta:
        proxy = True
