"""Sum up what ran, and compare it with what should have run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from catalog.models import Import, Thumbnail
from orders.models import Digest, Order
from partners.models import BuriedJob
from runs.models import DemoBatch, JobRun

State = JobRun.State
UNSETTLED = (State.ENQUEUED, State.RUNNING, State.RETRYING)


def by_class(runs: QuerySet[JobRun]) -> list[dict[str, Any]]:
    """One row for each job class: jobs, runs, failures, retries, and how the jobs ended."""
    rows = (
        runs.order_by("job_class")
        .values("job_class")
        .annotate(
            jobs=Count("pk"),
            total_runs=Sum("runs"),
            total_failures=Sum("failures"),
            total_retries=Sum("retries"),
            finished=Count("pk", filter=Q(state=State.FINISHED)),
            dead=Count("pk", filter=Q(state=State.DEAD)),
        )
    )
    return [dict(row) for row in rows]


def runs_of(batch: DemoBatch) -> QuerySet[JobRun]:
    """All jobs that were enqueued since this demo began."""
    return JobRun.objects.filter(enqueued_at__gte=batch.started_at)


def is_settled(batch: DemoBatch) -> bool:
    """Whether each job of this demo is there and has come to its end."""
    runs = runs_of(batch)
    return (
        runs.count() >= sum(batch.jobs.values()) and not runs.filter(state__in=UNSETTLED).exists()
    )


def complaints(batch: DemoBatch) -> Iterator[str]:
    """What is not as it should be: in the table of runs, and in the shop itself."""
    yield from _wrong_runs(batch)
    orders = Order.objects.filter(pk__in=batch.facts["orders"])
    if left := orders.filter(receipt_sent_at=None).count():
        yield f"{left} receipts were not sent"
    if left := orders.filter(reserved=False).count():
        yield f"the stock of {left} orders was not reserved"
    if left := orders.exclude(state=Order.State.ANNOUNCED).count():
        yield f"{left} parcels were not announced to the carrier"

    unpaid = Order.objects.get(pk=batch.facts["unpaid_order"])
    if unpaid.state != Order.State.UNPAID:
        yield f"{unpaid} is {unpaid.state}: `retries_exhausted` did not run"
    dead = runs_of(batch).filter(state=State.DEAD).values_list("jid", flat=True)
    if set(dead) - set(BuriedJob.objects.values_list("jid", flat=True)):
        yield "the death handler did not run for each dead job"

    price_list = Import.objects.get(pk=batch.facts["import"])
    if price_list.state != Import.State.DONE:
        yield f"the import is {price_list.state}"
    elif price_list.rows + price_list.rejected != batch.facts["import_rows"]:
        yield f"the import read {price_list.rows} + {price_list.rejected} rows"
    if not Thumbnail.objects.exists():
        yield "there are no thumbnails"
    if not Digest.objects.filter(day=batch.facts["digest_day"]).exists():
        yield "there is no digest"


def _wrong_runs(batch: DemoBatch) -> Iterator[str]:
    found = {row["job_class"]: row for row in by_class(runs_of(batch))}
    for job_class, jobs in batch.jobs.items():
        row = found.get(job_class)
        if row is None or row["jobs"] < jobs:
            yield f"{job_class}: {row['jobs'] if row else 0} of {jobs} jobs were seen"
            continue
        buried = job_class in batch.facts["must_die"]
        if row["dead" if buried else "finished"] < jobs:
            yield f"{job_class}: {row['dead']} dead, {row['finished']} finished, of {jobs} jobs"
        if job_class in batch.facts["must_fail"] and not row["total_failures"]:
            yield f"{job_class}: no failure, though the partner is flaky"
    for run in runs_of(batch).filter(state__in=UNSETTLED)[:10]:
        yield f"{run} is still {run.state} {run.error}"
