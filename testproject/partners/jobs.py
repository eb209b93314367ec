"""Jobs that call partners: one that needs patience, one that is given up."""

from __future__ import annotations

from typing import Any

from django_cogworker import Job
from orders.models import Order
from partners.models import PartnerCall
from partners.services import CardExpired, CarrierBusy, announce_parcel, charge_card


class AnnounceParcel(Job, queue="default", retry=5):
    """Tell the carrier about a parcel. Its service fails now and then, so this retries soon."""

    @classmethod
    def retry_in(cls, count: int, error: BaseException, payload: dict[str, Any]) -> float | None:
        # Short, because a demo should be short; None leaves the delay to cogworker.
        return 0.5 if isinstance(error, CarrierBusy) else None

    def perform(self, order_id: int) -> None:
        order = Order.objects.get(pk=order_id)
        call = PartnerCall(order=order, partner="carrier", attempt=self.attempt)
        try:
            call.answer, call.ok = announce_parcel(order_id, self.attempt), True
        except CarrierBusy as error:
            call.answer, call.ok = str(error), False
            raise
        finally:
            call.save()
        order.state = Order.State.ANNOUNCED
        order.save(update_fields=["state"])


class ChargeCard(Job, queue="critical", retry=1):
    """Charge a card that has expired: fails, is tried once more, and dies."""

    @classmethod
    def retry_in(cls, count: int, error: BaseException, payload: dict[str, Any]) -> float | None:
        return 0.5 if isinstance(error, CardExpired) else None

    @classmethod
    def retries_exhausted(cls, payload: dict[str, Any], error: BaseException) -> None:
        Order.objects.filter(pk=payload["args"][0]).update(state=Order.State.UNPAID)

    def perform(self, order_id: int) -> None:
        charge_card(order_id)
