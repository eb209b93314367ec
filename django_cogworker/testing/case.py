"""`CogworkerTestCase`: a mixin that puts each test of a class into fake mode.

    class ReceiptTest(CogworkerTestCase, TestCase):
        def test_enqueued(self):
            order.pay()
            self.assert_enqueued(SendReceipt, args=(order.pk,))
            self.drain()

It does not use `setUp`, so nobody has to call its own. What `setUpTestData` and `setUpClass` enqueue is collected
apart, and is not in the tests: each begins with nothing.
"""

from __future__ import annotations

import unittest
from typing import TYPE_CHECKING, Any, Unpack

from django_cogworker.client.draining import Draining
from django_cogworker.client.transport import CollectingTransport
from django_cogworker.exceptions import TestModeError
from django_cogworker.testing.assertions import Asserting
from django_cogworker.testing.modes import collect, fake
from django_cogworker.testing.toolkit import Jobs

if TYPE_CHECKING:
    _Base = unittest.TestCase
else:
    _Base = object


class CogworkerTestCase(Asserting, _Base):
    """To be named before the test class of Django."""

    #: The jobs of this test.
    jobs: Jobs

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Raises `TestModeError` where a test class comes before this one: its `run` would never come here, and the
        tests would push to the real Redis.
        """
        super().__init_subclass__(**kwargs)
        for each in cls.__mro__:
            if each is CogworkerTestCase:
                return
            if issubclass(each, unittest.TestCase) and not issubclass(each, CogworkerTestCase):
                raise TestModeError(
                    f"{cls.__qualname__} names {each.__name__} before CogworkerTestCase, which then has no effect. "
                    f"Name the mixin first: class {cls.__name__}(CogworkerTestCase, {each.__name__})."
                )

    @classmethod
    def setUpClass(cls) -> None:
        cls.enterClassContext(fake())
        super().setUpClass()

    def run(self, result: unittest.TestResult | None = None) -> unittest.TestResult | None:
        with collect() as self.jobs:
            return super().run(result)

    def debug(self) -> None:
        with collect() as self.jobs:
            super().debug()

    def drain(self, job_class: Any = None, **how: Unpack[Draining]) -> int:
        """`self.jobs.drain`."""
        return self.jobs.drain(job_class, **how)

    async def adrain(self, job_class: Any = None, **how: Unpack[Draining]) -> int:
        """`self.jobs.adrain`."""
        return await self.jobs.adrain(job_class, **how)

    def _collected(self, asked_for: str) -> CollectingTransport:
        return self.jobs._collected(asked_for)
