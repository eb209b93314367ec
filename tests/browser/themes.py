"""The themes of the admin under which our pages are looked at: what a project sets for each."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from tests.support.needs import missing

#: name: the app, which stands before the admin's; its settings.
THEMES: dict[str, tuple[str, dict[str, Any]]] = {
    "unfold": ("unfold", {}),
    "jazzmin": (
        "jazzmin",
        {
            "JAZZMIN_SETTINGS": {"use_google_fonts_cdn": False},
            "JAZZMIN_UI_TWEAKS": {"default_theme_mode": "auto"},
        },
    ),
}


def need_theme(name: str) -> None:
    """Skip, or fail, where the theme is not there."""
    if name and find_spec(THEMES[name][0]) is None:
        missing(f"the theme {name}")
