"""The pages, one a file; `registration.PAGES` lists them."""

from __future__ import annotations
