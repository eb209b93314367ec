"""Place an order: one transaction, and the jobs that follow from it."""

from __future__ import annotations

from django.db import transaction

from catalog.models import Product
from orders.jobs import ReserveStock, SendReceipt
from orders.models import Order
from partners.jobs import AnnounceParcel


def place_order(email: str, product: Product, pieces: int = 1, *, vip: bool = False) -> Order:
    """Save the order and enqueue what follows.

    The jobs are enqueued inside the transaction and wait for its commit by themselves, so a worker
    never looks for an order that is not there yet, and a rollback takes the jobs along.
    """
    with transaction.atomic():
        order = Order.objects.create(
            email=email, product=product, pieces=pieces, total=product.price * pieces
        )
        ReserveStock.perform_async(order.pk)
        SendReceipt.set(priority=10 if vip else 0).perform_async(order.pk)
        AnnounceParcel.perform_async(order.pk)
    return order
