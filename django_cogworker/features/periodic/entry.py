"""One periodic entry: which job, when, with what, and what becomes of slots that were missed."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from django_cogworker.exceptions import CogworkerError, ConfigurationError, InvalidPeriodicEntry
from django_cogworker.features.periodic.cron import Cron
from django_cogworker.jobs import options, registry
from django_cogworker.jobs.definition import Definition

CATCH_UP = ("once", "skip", "all")
DEFAULT_LIMIT = 10
MAX_LIMIT = 1000
#: Keys of an entry that are ours; all others are options of the job.
OWN_KEYS = (
    "job",
    "cron",
    "tz",
    "args",
    "kwargs",
    "catch_up",
    "limit",
    "run_at_first_start",
    "unique_run",
)


@dataclasses.dataclass(frozen=True)
class Entry:
    """What was declared, checked as far as it can be without the job class."""

    name: str
    job: str
    cron: Cron
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    catch_up: str = "once"
    limit: int = DEFAULT_LIMIT
    run_at_first_start: bool = False
    unique_run: bool = False
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def digest(self) -> str:
        """What tells another schedule under the same name apart."""
        text = "|".join((*self.cron.fields, self.cron.zone_name))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def definition(self) -> Definition:
        """The job class, with its arguments and options checked. Raises `InvalidPeriodicEntry`."""
        definition = registry.lookup(self.job)
        if definition is None:
            raise InvalidPeriodicEntry(
                f"{self}: no job class named {self.job!r} is known here.{_nearest_job(self.job)}"
            )
        return definition

    def payload(self) -> dict[str, Any]:
        """A payload as an ordinary call of the job would make it. Raises
        `InvalidPeriodicEntry`.
        """
        definition = self.definition()
        try:
            merged = definition.options.merged(self.options, definition.name)
            return definition.payload(tuple(self.args), dict(self.kwargs), merged)
        except CogworkerError as error:
            raise InvalidPeriodicEntry(f"{self}: {error}") from error

    def published(self) -> str:
        """For pages, as JSON."""
        return json.dumps(
            {
                "class": self.job,
                "cron": self.cron.line,
                "tz": self.cron.zone_name,
                "catch_up": self.catch_up,
                "unique_run": self.unique_run,
                "digest": self.digest,
            }
        )

    def __str__(self) -> str:
        return f"periodic entry {self.name!r}"


def make_entry(name: str, given: Mapping[str, Any], default_zone: str) -> Entry:
    """An entry from its settings. Raises `InvalidPeriodicEntry`, which names it and the cure."""
    _check_keys(name, given)
    _check_name(name)
    job = given.get("job")
    job = getattr(job, "job_name", job)
    if not isinstance(job, str) or not job:
        raise _wrong(name, "job", job, "the name of a job class, such as 'shop.jobs.Nightly'")
    line = given.get("cron")
    if not isinstance(line, str):
        raise _wrong(name, "cron", line, "a cron line such as '0 3 * * *'")
    zone = given.get("tz") or default_zone
    zone = getattr(zone, "key", zone)
    if not isinstance(zone, str):
        raise _wrong(name, "tz", zone, "the IANA name of a zone, such as 'Europe/Paris'")
    try:
        cron = Cron(line, zone, seed=name)
    except ValueError as error:
        raise InvalidPeriodicEntry(f"periodic entry {name!r}: {error}.") from None
    args, kwargs = given.get("args", ()), given.get("kwargs") or {}
    if isinstance(args, str) or not isinstance(args, Sequence):
        raise _wrong(name, "args", args, "a list")
    if not isinstance(kwargs, Mapping) or not all(isinstance(each, str) for each in kwargs):
        raise _wrong(name, "kwargs", kwargs, "a dict with texts as keys")
    catch_up = given.get("catch_up", "once")
    if catch_up not in CATCH_UP:
        raise _wrong(name, "catch_up", catch_up, " or ".join(map(repr, CATCH_UP)))
    limit = given.get("limit", DEFAULT_LIMIT)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise _wrong(name, "limit", limit, f"a whole number from 1 to {MAX_LIMIT}")
    first = given.get("run_at_first_start", False)
    if not isinstance(first, bool):
        raise _wrong(name, "run_at_first_start", first, "True or False")
    unique_run = given.get("unique_run", False)
    if not isinstance(unique_run, bool):
        raise _wrong(name, "unique_run", unique_run, "True or False")
    more = {key: value for key, value in given.items() if key not in OWN_KEYS}
    return Entry(
        name,
        job,
        cron,
        tuple(args),
        dict(kwargs),
        catch_up,
        limit,
        first,
        unique_run,
        more,
    )


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= 200 or not name.isprintable():
        raise InvalidPeriodicEntry(
            f"A periodic entry is named {name!r}; a name is printable text of 1 to 200 characters."
        )


def _check_keys(name: str, given: Mapping[str, Any]) -> None:
    known = {*OWN_KEYS, *options._declared}
    for key in given:
        if key in known:
            continue
        near = difflib.get_close_matches(str(key), known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known are: {', '.join(sorted(known))}."
        raise InvalidPeriodicEntry(
            f"periodic entry {name!r} has {key!r}, which means nothing. {hint}"
        )


def _wrong(name: str, key: str, value: Any, allowed: str) -> ConfigurationError:
    return InvalidPeriodicEntry(
        f"periodic entry {name!r}: {key} is {value!r}; allowed is {allowed}."
    )


def _nearest_job(name: str) -> str:
    near = difflib.get_close_matches(name, registry._definitions, n=1)
    return (
        f" Did you mean {near[0]!r}?"
        if near
        else " Jobs live in <app>/jobs.py of an installed app."
    )
