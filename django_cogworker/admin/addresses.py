"""Names of things as a part of an address, and back.

By the admin's own quoting; beside it for the two names that mean a way in an address, which no browser sends as they
are.
"""

from __future__ import annotations

from django.contrib.admin.utils import quote, unquote

#: No other name is quoted as these: `_` itself becomes `_5F`.
_DOTS = {".": "_2E", "..": "_2E_2E"}
_NAMES = {quoted: name for name, quoted in _DOTS.items()}


def in_address(name: str) -> str:
    return _DOTS.get(name) or str(quote(name))


def out_of_address(quoted: str) -> str:
    return _NAMES.get(quoted) or unquote(quoted)
