"""Django's own `TestCase` on PostgreSQL, run by Django's runner: jobs run here, in the transaction of the test.

Not collected by pytest; `tests/process/test_databases.py` starts it.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import TestCase

from django_cogworker import Job
from django_cogworker.testing import fake, inline


class Rename(Job, retry=False):
    """Works on a row that only the caller's transaction sees."""

    def perform(self, name: str, *, wrong: bool = False) -> None:
        user = User.objects.get(username=name)
        user.first_name = "renamed"
        user.save()
        if wrong:
            raise ValueError("renamed, and then this")


class InTransaction(TestCase):
    def setUp(self) -> None:
        # What tells whether a connection may be kept; here it says no.
        connection.close_at = 0.0
        self.backend = self._backend()
        User.objects.create(username="anna")

    def tearDown(self) -> None:
        assert connection.in_atomic_block
        assert self._backend() == self.backend
        assert User.objects.get(username="anna").first_name == "renamed"

    def _backend(self) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("select pg_backend_pid()")
            return cursor.fetchone()[0]

    def test_inline(self) -> None:
        with inline():
            Rename.perform_async("anna")

    def test_inline_with_an_error(self) -> None:
        with inline(), pytest.raises(ValueError, match="and then this"):
            Rename.perform_async("anna", wrong=True)

    def test_fake(self) -> None:
        with fake():
            Rename.perform_async("anna")
            assert Rename.drain() == 1
