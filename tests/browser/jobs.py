"""Jobs that give the pages something to show."""

from __future__ import annotations

from django_cogworker import Job
from tests.project import journal


class PartnerDidNotAnswer(OSError):
    """With a name as long as they are in life."""


class Breaks(Job, retry=5, tags=["fragile"]):
    """Fails, and is tried again when all tests are long over."""

    @classmethod
    def retry_in(cls, count: int, error: BaseException, payload: dict[str, object]) -> float:
        return 3600

    def perform(self, what: str) -> None:
        raise PartnerDidNotAnswer(f"{what} <b>broke</b> & is not mended")


class Tells(Job, track=True):
    """Tells how far it is, and waits for the file `name`."""

    def perform(self, name: str = "never") -> None:
        self.at(40, "half the way, nearly")
        journal.write(f"started {name}")
        journal.wait_for_file(name)
