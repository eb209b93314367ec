"""The orders' jobs: stock, receipts by mail, and the owner's digest."""

from __future__ import annotations

from datetime import date

from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Count, F, Sum
from django.utils import timezone

from catalog.models import Product
from django_cogworker import Job
from orders.models import Digest, Order


class ReserveStock(Job, queue="critical"):
    """Take the ordered pieces off the stock, once: the mark and the stock change together."""

    def perform(self, order_id: int) -> None:
        with transaction.atomic():
            if Order.objects.filter(pk=order_id, reserved=False).update(reserved=True):
                order = Order.objects.get(pk=order_id)
                Product.objects.filter(pk=order.product_id, stock__gte=order.pieces).update(
                    stock=F("stock") - order.pieces
                )


class SendReceipt(Job, queue="mail", retry=5):
    """Send the receipt of one order, once.

    A job may run twice (a worker can die after the mail went out and before it could say so), so
    the order remembers that its receipt was sent.
    """

    def perform(self, order_id: int, *, copy_to: str | None = None) -> None:
        order = Order.objects.select_related("product").get(pk=order_id)
        if order.receipt_sent_at:
            return
        EmailMessage(
            subject=f"Your order {order.pk}",
            body=f"{order.pieces} x {order.product}: {order.total} EUR. Thank you!",
            to=[order.email],
            bcc=[copy_to] if copy_to else [],
        ).send()
        order.receipt_sent_at = timezone.now()
        order.save(update_fields=["receipt_sent_at"])


class NightlyDigest(Job, queue="low"):
    """Add up what was sold on one day. The day comes as a `date`, and arrives as one."""

    def perform(self, day: date) -> None:
        sold = Order.objects.filter(placed_at__date=day).aggregate(
            orders=Count("pk"), turnover=Sum("total", default=0)
        )
        Digest.objects.update_or_create(day=day, defaults=sold)
