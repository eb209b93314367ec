from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand
from django.db import transaction
from django.utils import timezone

from catalog.jobs import ImportPriceList, MakeThumbnail, count_stock
from catalog.models import Import, Product
from catalog.samples import make_price_list, make_products
from orders.checkout import place_order
from orders.jobs import NightlyDigest, SendReceipt
from orders.models import Order
from partners.jobs import ChargeCard
from runs.models import DemoBatch

ORDERS = 12
THUMBNAIL_SIZES = (80, 160, 320)
IMPORT_ROWS = 5000
DIGEST_DELAY = timedelta(seconds=3)


class Command(BaseCommand):
    help = "Enqueue what a busy minute of the shop looks like."

    def handle(self, *args: Any, **options: Any) -> None:
        started_at, products = timezone.now(), make_products()
        jobs: Counter[str] = Counter()
        orders = self._place_orders(products, jobs)
        self._make_thumbnails(products, jobs)
        price_list = self._import_price_list(jobs)
        unpaid = self._charge_expired_card(products[0], jobs)
        day = self._schedule_digest(jobs)
        self._count_points(orders, jobs)
        count_stock.perform_async()
        jobs["catalog.jobs.count_stock"] += 1
        DemoBatch.objects.create(
            started_at=started_at,
            jobs=dict(jobs),
            facts={
                "orders": orders,
                "unpaid_order": unpaid.pk,
                "import": price_list.pk,
                "import_rows": IMPORT_ROWS,
                "digest_day": day.isoformat(),
                "must_fail": ["partners.jobs.AnnounceParcel", "partners.jobs.ChargeCard"],
                "must_die": ["partners.jobs.ChargeCard"],
            },
        )
        self.stdout.write(f"Enqueued {sum(jobs.values())} jobs of {len(jobs)} classes.")

    def _place_orders(self, products: list[Product], jobs: Counter[str]) -> list[int]:
        """Orders as the web page makes them; the jobs go out when each transaction commits."""
        orders = [
            place_order(
                f"customer{number}@example.com", products[number % len(products)], vip=number == 0
            )
            for number in range(ORDERS)
        ]
        for job_class in ("ReserveStock", "SendReceipt"):
            jobs[f"orders.jobs.{job_class}"] += ORDERS
        jobs["partners.jobs.AnnounceParcel"] += ORDERS
        self._place_order_in_vain(products[0])
        return [order.pk for order in orders]

    def _place_order_in_vain(self, product: Product) -> None:
        """An order that is rolled back: its jobs must never be seen."""
        with transaction.atomic():
            place_order("nobody@example.com", product)
            transaction.set_rollback(True)

    def _make_thumbnails(self, products: list[Product], jobs: Counter[str]) -> None:
        """Many jobs of one class in few round trips."""
        wanted = [(product.pk, size) for product in products for size in THUMBNAIL_SIZES]
        MakeThumbnail.perform_bulk(wanted)
        jobs["catalog.jobs.MakeThumbnail"] += len(wanted)

    def _import_price_list(self, jobs: Counter[str]) -> Import:
        path = make_price_list("supplier.csv", IMPORT_ROWS)
        price_list = Import.objects.create(file=str(path))
        ImportPriceList.perform_async(price_list.pk)
        jobs["catalog.jobs.ImportPriceList"] += 1
        return price_list

    def _charge_expired_card(self, product: Product, jobs: Counter[str]) -> Order:
        """A job that fails, is tried again, and is buried."""
        order = Order.objects.create(email="poor@example.com", product=product, total=product.price)
        ChargeCard.set(priority=5).perform_async(order.pk)
        SendReceipt.perform_in(timedelta(seconds=1), order.pk, copy_to="owner@example.com")
        jobs["partners.jobs.ChargeCard"] += 1
        jobs["orders.jobs.SendReceipt"] += 1
        return order

    def _count_points(self, orders: list[int], jobs: Counter[str]) -> None:
        """A task of Django's own API, where that is there."""
        if apps.is_installed("loyalty"):
            from loyalty.tasks import count_points

            count_points.enqueue(Order.objects.get(pk=orders[0]).email)
            jobs["loyalty.tasks.count_points"] += 1

    def _schedule_digest(self, jobs: Counter[str]) -> Any:
        """What would run at night runs in a few seconds here."""
        day = timezone.now().date()
        NightlyDigest.perform_in(DIGEST_DELAY, day)
        jobs["orders.jobs.NightlyDigest"] += 1
        return day
