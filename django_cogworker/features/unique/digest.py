"""The key of a unique job: a digest of its class and of the arguments that count.

It is made once, by the push, and travels in the payload. The queue is no part of it: the same job on two
queues is the same job. Arguments count in wire form, bound to the signature where the class is known here,
so that `f(1)`, `f(x=1)` and a default that is left out are the same.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Sequence
from typing import Any

from django_cogworker.exceptions import ArgumentError, InvalidOption
from django_cogworker.jobs import registry
from django_cogworker.payload.arguments import (
    TAG,
    VALUE,
    pack_args,
    unpack_args,
    unpack_kwargs,
)


def key_of(
    payload: dict[str, Any], unique_on: Sequence[str] | Callable[..., Any] | None, mode: str
) -> str:
    """The key of a payload: 40 hex characters. Raises `InvalidOption` where `unique_on` does not fit."""
    definition = registry.lookup(payload["class"])
    name = payload["class"] if definition is None else definition.name
    if callable(unique_on):
        counts: Any = _answer(name, unique_on, payload)
    else:
        signature = None if definition is None else definition.signature
        counts = _arguments(payload, signature)
        if unique_on is not None:
            counts = _chosen(name, counts, unique_on)
    scope = "run" if mode == "while_executing" else "push"
    text = json.dumps([name, scope, canonical(counts)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:40]


def canonical(value: Any) -> Any:
    """Wire form in which equal values look equal: the members of a set are in order."""
    if isinstance(value, dict):
        if value.get(TAG) in ("set", "frozenset") and isinstance(value.get(VALUE), list):
            members = [canonical(each) for each in value[VALUE]]
            return {
                **value,
                VALUE: sorted(members, key=lambda each: json.dumps(each, sort_keys=True)),
            }
        return {name: canonical(each) for name, each in value.items()}
    if isinstance(value, list):
        return [canonical(each) for each in value]
    return value


def _answer(name: str, function: Callable[..., Any], payload: dict[str, Any]) -> Any:
    args = unpack_args(payload.get("args") or [])
    answer = function(*args, **unpack_kwargs(payload.get("kwargs") or {}))
    try:
        return pack_args([answer])
    except ArgumentError as error:
        raise InvalidOption(
            f"{name}: unique_on answered {answer!r}, which cannot be part of a key ({error})."
        ) from None


def _arguments(payload: dict[str, Any], signature: inspect.Signature | None) -> dict[str, Any]:
    """The arguments by name, in wire form; positional ones without a name under `*`."""
    args, kwargs = payload.get("args") or [], payload.get("kwargs") or {}
    if signature is not None:
        try:
            return _bound(signature, args, kwargs)
        except TypeError:
            pass  # they do not fit; whoever runs the job will say so
    return {"*": args, **kwargs}


def _bound(signature: inspect.Signature, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    given = signature.bind(*args, **kwargs).arguments
    found: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            found.update(given.get(parameter.name, {}))
        elif parameter.kind is parameter.VAR_POSITIONAL:
            found["*"] = list(given.get(parameter.name, ()))
        elif parameter.name in given:
            found[parameter.name] = given[parameter.name]
        else:
            try:
                found[parameter.name] = pack_args([parameter.default])[0]
            except ArgumentError:
                pass  # a default that cannot travel never came along
    return found


def _chosen(name: str, arguments: dict[str, Any], wanted: Sequence[str]) -> list[Any]:
    missing = [each for each in wanted if each not in arguments]
    if missing:
        known = ", ".join(each for each in arguments if each != "*") or "none"
        raise InvalidOption(
            f"{name}: unique_on names {missing[0]!r}, which is no argument of this call. Known: {known}."
        )
    return [[each, arguments[each]] for each in sorted(set(wanted))]
