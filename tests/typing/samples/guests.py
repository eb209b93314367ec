"""What a project has of its own as arguments, and mails."""

from __future__ import annotations

import dataclasses
import enum
from typing import assert_type

from django_cogworker import Job
from django_cogworker.mail import SendEmail
from django_cogworker.payload.references import ModelReference


class Speed(enum.Enum):
    FAST = 1


@dataclasses.dataclass
class Parcel:
    weight: int


class Ship(Job, missing_row="discard"):
    def perform(self, parcel: Parcel, speed: Speed = Speed.FAST) -> None: ...


class Wrong(Job, missing_row="drop"):  # must fail
    def perform(self) -> None: ...


def ship() -> None:
    assert_type(Ship.perform_async(Parcel(3)), str | None)
    Ship.set(missing_row="retry").perform_async(Parcel(3), Speed.FAST)
    Ship.perform_async(3)  # must fail
    Ship.perform_async(Parcel(3), "FAST")  # must fail


assert_type(ModelReference("shop.Order", 42).db, str)
SendEmail.set(queue="mail", priority=5)
