"""The README and the docs say what the code has: names, ids, options, keys, links."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import load_command_class

from django_cogworker import api, client, conf, exceptions, signals, testing
from django_cogworker.client.transport import CollectingTransport
from django_cogworker.jobs import options
from django_cogworker.jobs.base import Job
from django_cogworker.jobs.call import Call
from django_cogworker.payload.job import OWN_FIELDS
from django_cogworker.store.keys import Keys
from django_cogworker.worker.words import SIGNALS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKING_PAGES = [*PAGES, *sorted(each for each in ROOT.glob("*.md") if each not in PAGES)]

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def read(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


def rows(path: str) -> list[list[str]]:
    """The cells of all tables of a page, without their heads."""
    lines = [line for line in read(path).splitlines() if line.startswith("|")]
    cells = [[each.strip() for each in line.strip("|").split("|")] for line in lines]
    return [each for each in cells if not set(each[0]) <= {"-", " "}]


def named(path: str, column: int = 0) -> list[str]:
    """What stands in back quotes at the beginning of that column of a page's tables."""
    found = (re.match(r"`([^`]+)`", row[column]) for row in rows(path) if len(row) > column)
    return [each[1] for each in found if each]


def python_blocks() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        blocks = [
            text
            for language, text in BLOCK.findall(page.read_text("utf-8"))
            if language == "python"
        ]
        yield from ((f"{name_of(page)} block {at}", text) for at, text in enumerate(blocks, 1))


SNIPPETS = list(python_blocks())


# --- snippets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("snippet", [text for _, text in SNIPPETS], ids=[at for at, _ in SNIPPETS])
def test_a_snippet_is_python_and_imports_what_we_have(snippet):
    tree = ast.parse(snippet)
    compile(tree, "<snippet>", "exec")
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(
            "django_cogworker"
        ):
            continue
        module = importlib.import_module(node.module or "")
        missing = [each.name for each in node.names if not hasattr(module, each.name)]
        assert not missing, f"{node.module} has no {missing}"


def test_job_classes_of_the_snippets_have_options_that_exist():
    """Class keywords and those of `@job` and `.set()`."""
    allowed = {*options._declared, "aliases", "discard_on", "retry_in", "retries_exhausted"}
    for at, snippet in SNIPPETS:
        for node in ast.walk(ast.parse(snippet)):
            keywords: list[ast.keyword] = []
            if (
                isinstance(node, ast.ClassDef)
                and any(isinstance(base, ast.Name) and base.id == "Job" for base in node.bases)
            ) or (
                isinstance(node, ast.Call)
                and (
                    (isinstance(node.func, ast.Name) and node.func.id == "job")
                    or (isinstance(node.func, ast.Attribute) and node.func.attr == "set")
                )
            ):
                keywords = node.keywords
            wrong = {each.arg for each in keywords if each.arg} - allowed
            # `tenant.set(value)` of a context variable has no keywords.
            assert not wrong, f"{at}: {wrong}"


# --- links -----------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchors that code hosts make of a page's headings."""
    text = BLOCK.sub("", page.read_text("utf-8"))
    plain = (re.sub(r"[`*]", "", heading).strip().lower() for heading in HEADING.findall(text))
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", LINKING_PAGES, ids=name_of)
def test_every_internal_link_leads_somewhere(page):
    broken = []
    for link in LINK.findall(BLOCK.sub("", page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def test_every_page_is_in_the_contents():
    index = ROOT / "docs" / "index.md"
    linked = {
        (index.parent / link.partition("#")[0]).resolve()
        for link in LINK.findall(index.read_text("utf-8"))
    }
    assert {each for each in PAGES if each.parent != ROOT and each != index} <= linked


# --- names -----------------------------------------------------------------------------------------


def test_every_setting_is_described_with_the_id_of_its_check():
    described = {
        row[0].strip("`"): row[4].strip("`")
        for row in rows("docs/reference/settings.md")
        if len(row) > 4
    }
    described = {name: check for name, check in described.items() if name.startswith("COGWORKER_")}
    assert described == {each.name: each.check_id for each in conf.SETTINGS}


@pytest.mark.parametrize("page", LINKING_PAGES, ids=name_of)
def test_no_page_names_a_setting_that_does_not_exist(page):
    known = {each.name for each in conf.SETTINGS}
    known |= {"COGWORKER_REDIS_URL"}  # an environment variable
    known |= {"COGWORKER_CI", "COGWORKER_"}  # of the test suite; what all begin with
    mentioned = set(re.findall(r"\bCOGWORKER_[A-Z_]*", page.read_text("utf-8")))
    assert mentioned <= known


def test_every_check_is_described_and_no_other():
    source = read("django_cogworker/checks.py").partition('"""\n')[2]
    for each in sorted((ROOT / "django_cogworker").glob("*/**/checks.py")):
        source += each.read_text("utf-8").partition('"""\n')[2]
    ids = {each.check_id for each in conf.SETTINGS} | set(re.findall(r"\b[EW]\d{3}\b", source))
    assert set(named("docs/reference/checks.md")) == ids


def test_every_option_is_described_and_no_other():
    described, beside = read("docs/reference/options.md").split("## Beside the options")
    first_table = re.findall(r"^\| `(\w+)` \|", described, re.MULTILINE)
    assert set(first_table) == set(options._declared)
    assert set(options.JobOptions.__annotations__) == set(options._declared)
    for name in ("aliases", "discard_on", "retry_in", "retries_exhausted"):
        assert f"`{name}" in beside


def key_names() -> set[str]:
    """Every key as the docs write it: without prefix, parameters in angle brackets."""
    keys, found = Keys(""), set()
    for name, member in inspect.getmembers(Keys):
        if name.startswith("_") or name == "prefix":
            continue
        if isinstance(member, property):
            found.add(getattr(keys, name))
        elif callable(member):
            parameters = [each for each in inspect.signature(member).parameters if each != "self"]
            key = member(keys, *(f"<{each}>" for each in parameters))
            found |= {key} if isinstance(key, str) else set(dataclasses.astuple(key))
    return found


def test_every_key_is_described_and_no_other():
    described = read("docs/internals/redis.md").partition("## The payload")[0]
    assert set(re.findall(r"^\| `([^`]+)` \|", described, re.MULTILINE)) == key_names()


def test_every_field_of_the_payload_is_described():
    described = read("docs/internals/redis.md").partition("## The payload")[2]
    assert set(re.findall(r"`(\w+)`", described)) >= OWN_FIELDS | {"v"}


def test_every_signal_is_described():
    assert set(named("docs/how-to/signals.md")) == set(signals._NAMES.values())


def test_every_error_is_described():
    page = read("docs/reference/python-api.md")
    errors = [
        name
        for name, each in vars(exceptions).items()
        if isinstance(each, type) and issubclass(each, Exception)
    ]
    assert [name for name in errors if f"`{name}`" not in page] == []


def test_every_public_name_is_described():
    page = read("docs/reference/python-api.md")
    names = [
        *client.__all__,
        *api.__all__,
        *testing.__all__,
        *importlib.import_module("django_cogworker").__all__,
    ]
    names += [
        name for each in (Job, Call, CollectingTransport) for name in vars(each) if name[0] != "_"
    ]
    names = [each for each in names if each not in ("enqueue", "enqueue_many", "name")]
    hooks = {"retry_in", "retries_exhausted", "discard_on", "context", "perform"}
    missing = [each for each in names if each not in hooks and not re.search(rf"\b{each}\b", page)]
    assert missing == []


def parser_of(command: str) -> argparse.ArgumentParser:
    return load_command_class("django_cogworker", command).create_parser("manage.py", command)


def test_every_option_of_runworker_is_described():
    page = read("docs/reference/commands.md")
    common = {"--help", "--version", "--settings", "--pythonpath", "--traceback", "--no-color"}
    common |= {"--force-color", "--skip-checks"}  # Django's own
    offered = {
        text
        for action in parser_of("runworker")._actions
        for text in action.option_strings
        if text.startswith("--")
    }
    assert {each for each in offered - common if f"`{each}`" not in page} == set()


def test_every_verb_of_cogworker_is_described():
    verbs = next(
        each
        for each in parser_of("cogworker")._actions
        if isinstance(each, argparse._SubParsersAction)
    )
    described = read("docs/reference/commands.md").partition("## cogworker")[2]
    assert set(re.findall(r"^\| `([\w-]+)[` ]", described, re.MULTILINE)) == set(verbs.choices)


def test_every_signal_of_the_system_is_described():
    described = read("docs/reference/commands.md")
    assert [each for each in SIGNALS if f"`{each.removeprefix('SIG')}`" not in described] == []
