"""`OPTIONS` of the backend: options of jobs for all its tasks, and under `tasks` for single ones.

    "OPTIONS": {"retry": 5, "result_ttl": 3600, "tasks": {"shop.tasks.send": {"timeout": 30}}}

A task's own word (`@task(retry=3)`) counts more than the general part, and less than what is said of it by name: the
project has the last word about a task that came with an app.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django_cogworker.exceptions import ConfigurationError, InvalidOption, UnknownOption
from django_cogworker.jobs.options import Options, no_options
from django_cogworker.tasks.task_class import ELSEWHERE, HOOKS, NAMES

#: A result is kept for so long after the end where nobody says otherwise (seconds).
RESULT_TTL = 86_400
#: The key of `OPTIONS` with the options of single tasks.
TASKS = "tasks"


class BackendOptions:
    """Those of one backend. Errors come when they are used, or from `problems`."""

    def __init__(self, alias: str, given: Any) -> None:
        self._owner = f"TASKS[{alias!r}]['OPTIONS']"
        self._given = given
        self._made: dict[str, tuple[dict[str, Any], Options]] = {}

    def of(self, path: str, own: dict[str, Any]) -> Options:
        """The options of a task that says `own` itself. Raises `ConfigurationError`."""
        made = self._made.get(path)
        if made is None or made[0] != own:
            made = self._made[path] = own, self._merged(path, own)
        return made[1]

    def _merged(self, path: str, own: dict[str, Any]) -> Options:
        options = no_options().merged({"result_ttl": RESULT_TTL}, self._owner)
        options = options.merged(self._general(), self._owner).merged(own, path)
        by_name = self._by_name()
        if path in by_name:
            options = self._named(options, path, by_name[path])
        _check_ttl(options, path)
        return options

    def _owner_of(self, path: Any) -> str:
        return f"{self._owner}['{TASKS}'][{path!r}]"

    def _named(self, options: Options, path: str, given: Any) -> Options:
        owner = self._owner_of(path)
        return options.merged(_checked(given, owner), owner)

    def _general(self) -> dict[str, Any]:
        given = self._given
        general = (
            {name: value for name, value in given.items() if name != TASKS}
            if isinstance(given, Mapping)
            else given
        )
        return _checked(general, self._owner, known=(*NAMES, TASKS))

    def _by_name(self) -> Mapping[str, Any]:
        found = self._given.get(TASKS, {})
        if not isinstance(found, Mapping):
            raise self._no_names(found)
        return found

    def _no_names(self, given: Any) -> ConfigurationError:
        return ConfigurationError(
            f"{self._owner}['{TASKS}'] is {given!r}; allowed is a dict of dicts, by the paths of tasks."
        )

    def problems(self, known: Mapping[str, dict[str, Any]]) -> list[str]:
        """All that is wrong. `known`: the tasks that exist by their paths, and what each says itself."""
        general, found = _faults(self._given, self._owner, known=(*NAMES, TASKS))
        if general is not None and general.values.get("result_ttl", 0) is None:
            found.append(f"{self._owner}: result_ttl is None; allowed is a number of seconds.")
        by_name = self._given.get(TASKS, {}) if isinstance(self._given, Mapping) else {}
        if not isinstance(by_name, Mapping):
            return [*found, str(self._no_names(by_name))]
        for path, given in by_name.items():
            if path not in known:
                near = difflib.get_close_matches(str(path), known, n=1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                found.append(f"{self._owner}['{TASKS}'] names {path!r}, which is no task.{hint}")
            found += _faults(given, self._owner_of(path), general)[1]
        return found or list(self._together(known))

    def _together(self, known: Mapping[str, dict[str, Any]]) -> Iterator[str]:
        """What is sound alone, and not beside what a task says itself."""
        for path, own in known.items():
            try:
                self._merged(path, own)
            except ConfigurationError as error:
                yield f"{self._owner}: {error}"


def check_own(path: str, own: Mapping[str, Any]) -> None:
    """Raise `ConfigurationError` where what a task says itself is wrong, whatever `OPTIONS` say."""
    options = no_options().merged({"result_ttl": RESULT_TTL}, path).merged(own, path)
    _check_ttl(options, path)


def _check_ttl(options: Options, path: str) -> None:
    if options["result_ttl"] is None:
        raise InvalidOption(
            f"{path}: result_ttl=None; allowed is a number of seconds: a task's result is found by it."
        )


def _faults(
    given: Any, owner: str, base: Options | None = None, known: Iterable[str] = NAMES
) -> tuple[Options | None, list[str]]:
    """Options on top of others, if they are sound; else all that is wrong, each by itself."""
    if not isinstance(given, Mapping):
        return None, [_no_dict(given, owner)]
    found: list[str] = []
    for name, value in given.items():
        if name == TASKS and TASKS in known:
            continue
        try:
            no_options().merged(_checked({name: value}, owner, known), owner)
        except ConfigurationError as error:
            found.append(str(error))
    if found:
        return None, found
    try:
        sound = {name: value for name, value in given.items() if name != TASKS}
        return (base or no_options()).merged(sound, owner), []
    except ConfigurationError as error:  # they contradict each other
        return None, [str(error)]


def _no_dict(given: Any, owner: str) -> str:
    return f"{owner} is {given!r}; allowed is a dict of options."


def _checked(given: Any, owner: str, known: Iterable[str] = NAMES) -> dict[str, Any]:
    """Options of tasks as a dict. Their values are judged when they are merged."""
    if not isinstance(given, Mapping):
        raise ConfigurationError(_no_dict(given, owner))
    for name in given:
        if name in ELSEWHERE:
            raise UnknownOption(f"{owner} has the option {name!r}; say {ELSEWHERE[name]}.")
        if name in HOOKS:
            raise UnknownOption(f"{owner} has {name!r}, which only a task itself can have.")
        if name not in NAMES:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known are: {', '.join(known)}."
            raise UnknownOption(f"{owner} has the option {name!r}, which nobody declared. {hint}")
    return dict(given)
