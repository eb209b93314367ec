"""The lists of known faults and of acceptance cases name tests that exist, and no case is forgotten."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
FAULTS = ROOT / "docs" / "internals" / "faults.md"
CASES = TESTS / "ACCEPTANCE.md"

NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")
ROW = re.compile(r"^\| (?!---|fault \||case \||row \|)(.+?) \| (.+) \|$", re.MULTILINE)
#: What stands in a row without a test must begin with one of these.
REASONS = ("Impossible", "Later", "The same test", "The first of these tests")

#: The numbers of each area; those that are missing in between have no case.
AREAS = {
    "C": "20 21 22 24 25 26 28 29",
    "E": "36 37 38 40 41 42 44 45 46 48 49 50 52 53 54",
    "G": "60 61 62 64 65 66 68 69 70 72 73 74 76 77 78 80 81 82 84 85 86",
    "H": "88 89 90 92 93 94 96 97 98 100 101 102 104 105 106 108 109 110 112 113 114 116",
    "K": "158 160 161 162 164 165",
    "L": "166 168 169 170 172 173 174 176 177 178",
    "M": "180 181 182 184 185 186 188 189 190 192 193 194 196 197 198 200 201 202 204 205 206 208",
    "N": "209 210 212 213 214 216 217 218 220 221",
    "O": "222 224 225 226",
    "P": "236 237 238 240 241 242 244 245 246 248 249 250 252 253 254 256 257 258 260 261 262 264 265 266",
    "T": "1 2 3 4 5 6 7 8 9 10",
}
PAINS = (
    "CE-10 CE-7 CE-9 RQ-9 HU-5 HU-8 Q2-5 Q2-6 TQ-6 TQ-8 TQ-12 SK-6 "
    "CE-1 CE-3 CE-4 RQ-2 RQ-3 RQ-6 RQ-8 DR-1 DR-3 DR-12 DR-13 HU-9 Q2-2 AR-1 AR-2 TQ-2 TQ-3 PR-2 PR-3 "
    "PR-5 DT-2 DT-3 DT-5 DT-11 DT-12 SK-2 SK-3 SK-5 SK-14 CE-12 CE-16 HU-2 AR-11 PR-11 SK-11 SK-12 "
    "DR-4 HU-10 Q2-3 PR-12 RQ-12 DR-10 DT-6 Q2-12 TQ-9 DR-9 "
    "CE-6 DR-6 DR-7 HU-3 Q2-9 DT-8 DT-9 CE-15 PR-6 SK-8 SK-9 SK-15 Q2-11 AR-10 RQ-14 CE-11"
)


@cache
def names_in(path: str) -> frozenset[str]:
    file = TESTS / path
    if not file.exists():
        return frozenset()
    nodes = ast.walk(ast.parse(file.read_text("utf-8")))
    return frozenset(each.name for each in nodes if isinstance(each, ast.FunctionDef))


@pytest.mark.parametrize("page", [FAULTS, CASES], ids=["faults", "cases"])
def test_every_test_that_is_named_exists(page):
    named = NAMED.findall(page.read_text("utf-8"))
    assert len(named) > 50
    assert [f"{path}::{name}" for path, name in named if name not in names_in(path)] == []


@pytest.mark.parametrize("page", [FAULTS, CASES], ids=["faults", "cases"])
def test_every_row_names_a_test_or_a_reason(page):
    rows = ROW.findall(page.read_text("utf-8"))
    assert len(rows) > 40
    empty = [what for what, why in rows if not NAMED.search(why) and not why.startswith(REASONS)]
    assert empty == []


def test_no_case_is_forgotten_and_none_comes_twice():
    listed = [what for what, _ in ROW.findall(CASES.read_text("utf-8"))]
    wanted = [f"{area}{number}" for area, numbers in AREAS.items() for number in numbers.split()]
    assert listed == wanted + sorted(PAINS.split(), key=listed.index)


# -- faults that no behaviour shows


def sources(*endings: str) -> list[tuple[str, str]]:
    package = ROOT / "django_cogworker"
    files = [each for each in sorted(package.rglob("*")) if each.suffix in endings]
    assert len(files) > 10
    return [(str(each.relative_to(ROOT)), each.read_text("utf-8")) for each in files]


def test_tq2_no_claim_is_without_a_ttl():
    """TQ-2: a lock is a text that is set, and its owner may die any moment. So every text that is set
    ends by itself, but for the age of the fleet, which belongs to nobody.
    """
    lua = [line for _, text in sources(".lua") for line in text.splitlines() if "'SET'" in line]
    endless = [each for each in lua if not re.search(r"'[EP]X'", each)]
    assert len(lua) > 5
    assert [each.partition("try(")[2] for each in endless] == ["'SET', KEYS[4], as_score(now)) end"]

    python = [
        node
        for path, text in sources(".py")
        if path.startswith("django_cogworker/store/")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("set", "setnx")
        and ast.unparse(node.func.value) != "_in_lenient"  # a context variable
        and node.args
    ]
    assert len(python) > 1
    assert all({"ex", "px"} & {each.arg for each in call.keywords} for call in python)


def test_nothing_looks_through_the_key_space():
    """12.1-8: whoever grows a Redis beside ours must not slow our workers."""
    looks = re.compile(r"\bscan_iter\b|\.scan\(|\.keys\([\"'f]|['\"](SCAN|KEYS)['\"]")
    assert [
        (path, line)
        for path, text in sources(".lua", ".py")
        for line in text.splitlines()
        if looks.search(line)
    ] == []


def test_dr13_how_soon_jobs_come_back_is_a_number_in_the_guarantees():
    """DR-13"""
    page = (ROOT / "docs" / "guarantees.md").read_text("utf-8")
    section = page.partition("## A dead worker's jobs come back")[2].partition("\n## ")[0]
    for said in ("each second", "every five seconds", "`COGWORKER_ORPHAN_THRESHOLD`"):
        assert said in section
