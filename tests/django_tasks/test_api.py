from __future__ import annotations

from tests.support.needs import need_module


def test_the_api_for_tasks_is_here():
    """Django has it from 6.0 on; before that its backport."""
    try:
        import django.tasks  # noqa: F401
    except ImportError:
        need_module("django_tasks")
