"""The shop as it is in the middle of a bad day, for pictures of the admin.

The jobs are real and fail by themselves: orders that were deleted, photos that are gone, cards that have expired.
Only the counters of the hours and days before are made up, since nobody worked then.
"""

from __future__ import annotations

import math
import time
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from catalog.jobs import ImportPriceList, MakeThumbnail
from catalog.models import Import, Product
from catalog.samples import make_price_list
from django_cogworker import api
from django_cogworker.features.history import buckets, names
from django_cogworker.store.store import get_store
from orders.jobs import NightlyDigest, SendReceipt
from orders.models import Order
from partners.jobs import AnnounceParcel, ChargeCard

#: Seconds that the jobs of a class take and wait, and how many of a hundred of all runs are theirs.
USUAL = {
    "orders.jobs.ReserveStock": (0.02, 0.004, 25),
    "orders.jobs.SendReceipt": (0.35, 0.03, 25),
    "partners.jobs.AnnounceParcel": (0.8, 0.05, 25),
    "catalog.jobs.MakeThumbnail": (0.15, 0.4, 25),
}
#: Orders that somebody deleted before their jobs ran.
DELETED = range(90_410, 90_416)
DAYS, HOURS = 30, 24
ROWS = 400_000
PATIENCE = 60.0


class Command(BaseCommand):
    help = "Give the pages of the admin something to show: failures, a paused queue, long jobs."

    def handle(self, *args: Any, **options: Any) -> None:
        self._count_the_past()
        self._let_jobs_fail()
        self._leave_some_waiting()
        for name in ("spring.csv", "summer.csv"):
            record = Import.objects.create(file=str(make_price_list(name, ROWS)))
            ImportPriceList.perform_async(record.pk)
        self._wait(lambda now: now.retrying >= len(DELETED) + 4 and now.dead >= 4)

    def _count_the_past(self) -> None:
        store, now = get_store(), int(time.time())
        pipe = store.client.pipeline(transaction=False)
        for back in range(1, DAYS):
            day = now // names.DAY - back
            runs = 5_200 - 130 * back + 900 * (day % 7 < 5)
            counts: dict[Any, int] = {"success": runs, "failed": runs * (2 + day % 3) // 100}
            pipe.hset(names.daily(store.keys, day), mapping=counts)
        for back in range(1, HOURS):
            hour = now // names.HOUR - back
            runs = int(260 + 220 * math.sin((hour % 24 - 8) * math.pi / 12))
            failed = runs // 4 if back in (2, 3) else runs // 50
            counts = {"processed": runs, "failed": failed}
            pipe.hset(store.keys.throughput(hour), mapping=counts)
            for job_class, (ran, waited, share) in USUAL.items():
                some = max(4, runs * share // 100)
                slow = 3.0 if back in (2, 3) else 1.0
                table: dict[Any, int] = {"success": some - failed // 4, "failed": failed // 4}
                for part, factor in ((0.5, 0.7), (0.35, 1.2), (0.11, 2.5), (0.04, 6.0)):
                    for letter, seconds in (("r", ran), ("w", waited)):
                        field = f"{letter}{buckets.bucket_of(seconds * factor * slow)}"
                        table[field] = table.get(field, 0) + round(some * part)
                pipe.hset(names.times(store.keys, job_class, hour), mapping=table)
        pipe.execute()

    def _let_jobs_fail(self) -> None:
        for number in DELETED:
            AnnounceParcel.perform_async(number)
        lost = Product.objects.create(sku="SHOP-404", name="Lost", price=1, photo="photos/404.jpg")
        MakeThumbnail.perform_bulk([(lost.pk, size) for size in (80, 160, 320)])
        ImportPriceList.perform_async(Import.objects.create(file="/srv/imports/autumn.csv").pk)
        for order in Order.objects.all()[:3]:
            ChargeCard.perform_async(order.pk)

    def _leave_some_waiting(self) -> None:
        api.Queue("mail").pause()
        for order in Order.objects.all()[:8]:
            SendReceipt.perform_async(order.pk)
            SendReceipt.perform_in(
                timedelta(hours=order.pk % 5 + 1), order.pk, copy_to="owner@example.com"
            )
        NightlyDigest.perform_in(timedelta(hours=9), timezone.now().date())

    def _wait(self, is_so: Any) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_so(api.Stats.now()):
            if time.monotonic() > deadline:
                raise CommandError(f"Not as it should be: {api.Stats.now()}")
            time.sleep(0.1)
