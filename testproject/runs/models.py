"""One row for each job that this project enqueued, and one for each start of the demo."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class JobRun(models.Model):
    """The life of one job, as its signals tell it."""

    class State(models.TextChoices):
        ENQUEUED = "enqueued"
        RUNNING = "running"
        FINISHED = "finished"
        RETRYING = "retrying"
        DEAD = "dead"
        DISCARDED = "discarded"

    jid = models.CharField(max_length=64, unique=True)
    job_class = models.CharField(max_length=200)
    queue = models.CharField(max_length=100)
    state = models.CharField(max_length=10, choices=State, default=State.ENQUEUED)
    runs = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    retries = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(null=True, blank=True)
    error = models.CharField(max_length=300, blank=True)
    enqueued_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"{self.job_class} {self.jid}"


class DemoBatch(models.Model):
    """One call of `enqueue_demo`, and what must have come of it."""

    started_at = models.DateTimeField()
    jobs = models.JSONField(help_text="How many jobs of each class.")
    facts = models.JSONField(help_text="Ids of the orders and imports that it made.")

    class Meta:
        verbose_name_plural = "demo batches"

    def __str__(self) -> str:
        return f"Demo of {self.started_at:%Y-%m-%d %H:%M:%S}"
