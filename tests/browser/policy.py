"""A strict Content Security Policy, as a project may have it. Django has its own means for it from 6.0 on."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

POLICY = {
    "default-src": ["'self'"],
    "img-src": ["'self'", "data:"],
    "object-src": ["'none'"],
    "base-uri": ["'none'"],
}


class Policy:
    """The same for Django 5.2."""

    header = "; ".join(" ".join((name, *values)) for name, values in POLICY.items())

    def __init__(self, answer: Callable[[HttpRequest], HttpResponse]) -> None:
        self.answer = answer

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.answer(request)
        response.headers["Content-Security-Policy"] = self.header
        return response
