"""What of a job may be shown to people: its sensitive arguments are masked.

Names are sensitive by `COGWORKER_SENSITIVE_ARGUMENTS`, and for one job class by its option `sensitive`. A value is
masked whole where its name is one of them, whatever the case of its letters: keyword arguments, positional ones
by the signature of the job's class (where it is known here), and keys of dicts at any depth. Whoever shows
arguments asks here; who computes with them (the api, the worker) does not.

This runs for every job that leaves a record, so what follows from a class is worked out once.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

from django_cogworker.conf import PerConfig, get_config
from django_cogworker.jobs import registry
from django_cogworker.jobs.definition import Definition
from django_cogworker.payload.arguments import TAG, VALUE
from django_cogworker.payload.job import OWN_FIELDS

MASK = "***"
#: Shorter texts are not looked for in others: they stand in them by chance. Nor are more than so many.
LEAST_HIDDEN = 4
MOST_HIDDEN = 200

_CONTAINERS = frozenset((list, dict))


@dataclasses.dataclass(frozen=True, slots=True)
class _Rules:
    """What is masked of one job class. `rest`: all positional arguments from this one on; `others`: all
    keyword arguments but `named`.
    """

    names: frozenset[str]
    positions: frozenset[int] = frozenset()
    rest: int | None = None
    others: bool = False
    named: frozenset[str] = frozenset()


#: By the name in the payload, with the definition that they were made of.
_known: PerConfig[dict[str, tuple[Definition | None, _Rules]]] = PerConfig(lambda config: {})


def visible_arguments(payload: Mapping[str, Any]) -> tuple[Any, Any]:
    """Positional and keyword arguments, in wire form, as they may be shown. The payload stays as it is."""
    args, kwargs = payload.get("args") or [], payload.get("kwargs")
    rules = _rules(payload.get("class"))
    try:
        if rules.positions or rules.rest is not None or not _CONTAINERS.isdisjoint(map(type, args)):
            args = _positional(args, rules)
        if kwargs:
            kwargs = _keywords(kwargs, rules)
    except RecursionError:  # a payload of other hands, nested deeper than we look
        return [MASK], None
    return args, kwargs


def visible_payload(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the whole payload as it may be shown: also free fields, its error's message, and what was no job."""
    args, kwargs = visible_arguments(payload)
    names = _rules(payload.get("class")).names
    shown: dict[str, Any] = {}
    for name, value in payload.items():
        if name == "args":
            shown[name] = args
        elif name == "kwargs":
            shown[name] = kwargs
        elif name == "error_message" and isinstance(value, str):
            shown[name] = masked_text(value, payload)
        elif name == "raw_payload":
            shown[name] = _raw(value, names)
        elif name in OWN_FIELDS and name != "context":
            shown[name] = value
        else:
            shown[name] = _field(name, value, names)
    return shown


def hidden_texts(payload: Mapping[str, Any]) -> list[str]:
    """The texts that `visible_arguments` hides, the longest first: those that are long enough to be told apart."""
    args, kwargs = payload.get("args") or [], payload.get("kwargs") or {}
    shown_args, shown_kwargs = visible_arguments(payload)
    found: set[str] = set()
    pairs: list[tuple[Any, Any]] = [(args, shown_args), (kwargs, shown_kwargs or {})]
    while pairs:
        real, shown = pairs.pop()
        if isinstance(real, dict) and isinstance(shown, dict):
            pairs += [(value, shown.get(name, MASK)) for name, value in real.items()]
        elif isinstance(real, list) and isinstance(shown, list):
            pairs += [
                (value, shown[at] if at < len(shown) else MASK) for at, value in enumerate(real)
            ]
        elif shown == MASK:
            found.update(_texts(real))
    return sorted(found, key=len, reverse=True)[:MOST_HIDDEN]


def masked_text(text: str, payload: Mapping[str, Any]) -> str:
    """A text about the job, such as its error's message, without the texts that its arguments hide. What was
    changed on its way into the text is not found, nor what is no text or shorter than four characters.
    """
    if text:
        for each in hidden_texts(payload):
            text = text.replace(each, MASK)
    return text


def _texts(value: Any) -> Iterator[str]:
    """All in there that are long enough; of tagged values the value alone."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            if len(each) >= LEAST_HIDDEN and each != MASK:
                yield each
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            waiting += [each.get(VALUE)] if TAG in each else each.values()


def _rules(name: Any) -> _Rules:
    known = _known()
    definition = registry.lookup(name) if isinstance(name, str) else None
    found = known.get(name) if definition is not None else known.get("")
    if found is None or found[0] is not definition:
        found = definition, _made(definition)
        known["" if definition is None else name] = found
    return found[1]


def _made(definition: Definition | None) -> _Rules:
    names = {each.casefold() for each in get_config().sensitive_arguments}
    if definition is None:
        return _Rules(frozenset(names))
    names |= {each.casefold() for each in definition.options["sensitive"]}
    positions, named = set(), set()
    rest, others, at = None, False, 0
    for parameter in definition.signature.parameters.values():
        hidden = parameter.name.casefold() in names
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = at if hidden else None
        elif parameter.kind is parameter.VAR_KEYWORD:
            others = hidden
        else:
            named.add(parameter.name)
            if parameter.kind is not parameter.KEYWORD_ONLY:
                positions |= {at} if hidden else set()
                at += 1
    return _Rules(frozenset(names), frozenset(positions), rest, others, frozenset(named))


def _positional(args: Any, rules: _Rules) -> list[Any]:
    return [
        MASK
        if at in rules.positions or (rules.rest is not None and at >= rules.rest)
        else _inside(each, rules.names)
        for at, each in enumerate(args)
    ]


def _keywords(kwargs: Mapping[str, Any], rules: _Rules) -> dict[str, Any]:
    return {
        name: MASK if rules.others and name not in rules.named else _field(name, value, rules.names)
        for name, value in kwargs.items()
    }


def _field(name: str, value: Any, names: frozenset[str]) -> Any:
    return MASK if name.casefold() in names else _inside(value, names)


def _inside(value: Any, names: frozenset[str]) -> Any:
    kind = type(value)
    if kind is list:
        return [_inside(each, names) for each in value]
    if kind is not dict:
        return value
    if TAG in value:  # a tagged value: these two keys are ours, not the project's
        ours = {name: _inside(value[name], names) for name in (TAG, VALUE) if name in value}
        return {name: _field(name, each, names) for name, each in value.items()} | ours
    return {name: _field(name, each, names) for name, each in value.items()}


def _raw(value: Any, names: frozenset[str]) -> Any:
    """What was no job: masked by its keys where it is JSON, else whole where it has any of the names."""
    text = str(value)
    try:
        found = json.loads(text)
        return json.dumps(_inside(found, names)) if type(found) in _CONTAINERS else text
    except (ValueError, RecursionError):
        folded = text.casefold()
        return MASK if any(each in folded for each in names) else text
