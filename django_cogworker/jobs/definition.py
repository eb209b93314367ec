"""A job class as the rest of the package sees it: a `Job` subclass or a function, it makes no
difference.

Everything that can be worked out once is worked out here at import: the name, the checked options,
the signature, whether `perform` is a coroutine.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from django_cogworker.exceptions import ArgumentError, ConfigurationError
from django_cogworker.jobs.context import JobContext
from django_cogworker.jobs.options import Options
from django_cogworker.payload import job as job_payload


class Definition:
    """What is known of a job class. `target` is the class or the function object that the project
    wrote.
    """

    __slots__ = (
        "_hook",
        "_max_args",
        "_min_args",
        "is_async",
        "make",
        "name",
        "options",
        "signature",
        "target",
    )

    def __init__(
        self,
        *,
        name: str,
        target: Any,
        options: Options,
        function: Callable[..., Any],
        make: Callable[[JobContext], tuple[Any, Callable[..., Any]]],
        bound: bool,
        hook: Callable[[str], Any],
    ) -> None:
        """`function` has the signature (its first parameter is left away where `bound`); `make`
        gives, for a context, the job (what middleware gets to see) and the callable that runs
        it; `hook` finds `retry_in`, `retries_exhausted` and `discard_on` when they are needed,
        so that one which a parent class gets later counts too.
        """
        self.name = name
        self.target = target
        self.options = options
        self.make = make
        self.is_async = inspect.iscoroutinefunction(function)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ConfigurationError(
                f"{name} is a generator: called as a job it would do nothing. Let it return."
            )
        self._hook = hook
        _check_errors(hook("discard_on"), name)
        self.signature = _signature(function, bound)
        self._min_args, self._max_args = _simple_counts(self.signature)

    def __repr__(self) -> str:
        return f"<Definition {self.name}>"

    @property
    def discard_on(self) -> tuple[type[BaseException], ...]:
        """Exceptions that end the job at once, with nothing kept."""
        errors: tuple[type[BaseException], ...] = self._hook("discard_on")
        return errors

    @property
    def retry_in(self) -> Callable[..., Any] | None:
        hook: Callable[..., Any] | None = self._hook("retry_in")
        return hook

    @property
    def retries_exhausted(self) -> Callable[..., Any] | None:
        hook: Callable[..., Any] | None = self._hook("retries_exhausted")
        return hook

    def check_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise `ArgumentError` where a call of `perform` with these would fail."""
        if not kwargs and self._min_args <= len(args) <= self._max_args:
            return
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{self.name} takes {self.signature}: {error}.") from None

    def payload(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: Options | None = None,
        at: float | None = None,
    ) -> dict[str, Any]:
        """A payload for a call with these arguments. Raises `ArgumentError`."""
        self.check_arguments(args, kwargs)
        chosen = options or self.options
        payload = job_payload.build(self.name, args, kwargs, chosen.fresh_fields(), at)
        for stamp in chosen.stamps:
            stamp(payload)
        return payload


def qualified_name(thing: Any) -> str:
    """`module.QualName`. Raises `ConfigurationError` for what no other process could find."""
    if not hasattr(thing, "__qualname__"):
        raise ConfigurationError(f"{thing!r} has no name of its own under which it could be found.")
    name = f"{thing.__module__}.{thing.__qualname__}"
    if "<locals>" in name or "<lambda>" in name:
        raise ConfigurationError(
            f"{name} is defined inside a function, where no worker can find it; "
            "define it at the top of a module."
        )
    return name


def _signature(function: Callable[..., Any], bound: bool) -> inspect.Signature:
    signature = inspect.signature(function)
    if not bound:
        return signature
    parameters = list(signature.parameters.values())
    return signature.replace(parameters=parameters[1:])


def _simple_counts(signature: inspect.Signature) -> tuple[int, float]:
    """How many positional arguments alone always fit; (1, 0) where a real look is needed each time."""
    least, most = 0, 0.0
    for each in signature.parameters.values():
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
            most += 1
            least += each.default is each.empty
        elif each.kind is each.VAR_POSITIONAL:
            most = float("inf")
        elif each.kind is each.KEYWORD_ONLY and each.default is each.empty:
            return 1, 0
    return least, most


def _check_errors(given: Any, name: str) -> None:
    if not isinstance(given, tuple):
        raise ConfigurationError(
            f"{name}: discard_on is a tuple of exception classes, not {given!r}."
        )
    for each in given:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise ConfigurationError(
                f"{name}: discard_on is a tuple of exception classes, but holds {each!r}."
            )
