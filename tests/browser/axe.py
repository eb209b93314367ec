"""axe-core, which finds what makes a page hard to use for some. Of the package that has it we use the script alone."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.support.needs import need_module

PACKAGE = "axe_playwright_python"


@cache
def axe_source() -> str:
    need_module(PACKAGE)
    spec = find_spec(PACKAGE)
    assert spec is not None
    assert spec.submodule_search_locations
    return (Path(spec.submodule_search_locations[0]) / "axe.min.js").read_text("utf-8")
