"""`Job`: the base of job classes.

    class SendReceipt(Job, queue="mail", retry=5):
        def perform(self, order_id: int) -> None: ...

    SendReceipt.perform_async(42)

A subclass with a `perform` is registered under its name when it is made. `Job` itself declares no
`perform`: that of each subclass gives `perform_async` its signature, which the descriptors below
pass on to type checkers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ClassVar, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, overload

from asgiref.sync import sync_to_async

from django_cogworker.client.draining import Draining
from django_cogworker.client.transport import collecting_transport
from django_cogworker.exceptions import ConfigurationError, NoJobContext
from django_cogworker.jobs import registry
from django_cogworker.jobs.answers import RetryAnswer
from django_cogworker.jobs.call import Arguments, Call
from django_cogworker.jobs.context import JobContext
from django_cogworker.jobs.definition import Definition, qualified_name
from django_cogworker.jobs.options import JobOptions, Options, no_options
from django_cogworker.jobs.when import Delay, Moment

P = ParamSpec("P")
P_co = ParamSpec("P_co")
R_co = TypeVar("R_co", covariant=True)


class HasPerform(Protocol[P_co, R_co]):
    """Anything with a `perform`: what the signature of `perform_async` is taken from."""

    def perform(self, *args: P_co.args, **kwargs: P_co.kwargs) -> R_co: ...


class _Set(Protocol[P]):
    def __call__(self, **options: Unpack[JobOptions]) -> Call[P]: ...


class _Bulk(Protocol):
    def __call__(
        self, calls: Iterable[Arguments], /, *, at: Moment | None = None
    ) -> list[str | None]: ...


class _ABulk(Protocol):
    async def __call__(
        self, calls: Iterable[Arguments], /, *, at: Moment | None = None
    ) -> list[str | None]: ...


class _Method:
    """Gives the method of that name of the class's `Call`."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def _of(self, owner: Any) -> Any:
        return getattr(owner._call(), self._name)


class _PerformAsync(_Method):
    @overload
    def __get__(
        self, instance: object, owner: type[HasPerform[P, Any]]
    ) -> Callable[P, str | None]: ...
    @overload
    def __get__(self, instance: object, owner: type[Job]) -> Callable[..., str | None]: ...
    def __get__(self, instance: object, owner: Any) -> Any:
        return self._of(owner)


class _PerformIn(_Method):
    @overload
    def __get__(
        self, instance: object, owner: type[HasPerform[P, Any]]
    ) -> Callable[Concatenate[Delay, P], str | None]: ...
    @overload
    def __get__(self, instance: object, owner: type[Job]) -> Callable[..., str | None]: ...
    def __get__(self, instance: object, owner: Any) -> Any:
        return self._of(owner)


class _PerformAt(_Method):
    @overload
    def __get__(
        self, instance: object, owner: type[HasPerform[P, Any]]
    ) -> Callable[Concatenate[Moment, P], str | None]: ...
    @overload
    def __get__(self, instance: object, owner: type[Job]) -> Callable[..., str | None]: ...
    def __get__(self, instance: object, owner: Any) -> Any:
        return self._of(owner)


class _APerformAsync(_Method):
    @overload
    def __get__(
        self, instance: object, owner: type[HasPerform[P, Any]]
    ) -> Callable[P, Awaitable[str | None]]: ...
    @overload
    def __get__(
        self, instance: object, owner: type[Job]
    ) -> Callable[..., Awaitable[str | None]]: ...
    def __get__(self, instance: object, owner: Any) -> Any:
        return self._of(owner)


class _APerformIn(_Method):
    @overload
    def __get__(
        self, instance: object, owner: type[HasPerform[P, Any]]
    ) -> Callable[Concatenate[Delay, P], Awaitable[str | None]]: ...
    @overload
    def __get__(
        self, instance: object, owner: type[Job]
    ) -> Callable[..., Awaitable[str | None]]: ...
    def __get__(self, instance: object, owner: Any) -> Any:
        return self._of(owner)


class _APerformAt(_Method):
    @overload
    def __get__(
        self, instance: object, owner: type[HasPerform[P, Any]]
    ) -> Callable[Concatenate[Moment, P], Awaitable[str | None]]: ...
    @overload
    def __get__(
        self, instance: object, owner: type[Job]
    ) -> Callable[..., Awaitable[str | None]]: ...
    def __get__(self, instance: object, owner: Any) -> Any:
        return self._of(owner)


class _SetOptions(_Method):
    @overload
    def __get__(self, instance: object, owner: type[HasPerform[P, Any]]) -> _Set[P]: ...
    @overload
    def __get__(self, instance: object, owner: type[Job]) -> _Set[...]: ...
    def __get__(self, instance: object, owner: Any) -> Any:
        return self._of(owner)


class _PerformBulk(_Method):
    def __get__(self, instance: object, owner: type[Job]) -> _Bulk:
        bulk: _Bulk = self._of(owner)
        return bulk


class _APerformBulk(_Method):
    def __get__(self, instance: object, owner: type[Job]) -> _ABulk:
        bulk: _ABulk = self._of(owner)
        return bulk


class _Jobs:
    """`SomeJob.jobs`: the payloads collected in fake mode, oldest first. Raises `TestModeError`
    outside it.
    """

    def __get__(self, instance: object, owner: type[Job]) -> list[dict[str, Any]]:
        return collecting_transport("jobs").jobs(owner.job_name)


def _doc_of(name: str) -> str:
    return getattr(Call, name).__doc__ or ""


def _inherited_options(cls: type[Job]) -> dict[str, Any]:
    """What all bases say, each overridden by those before it in the order of Python's look-ups."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found.update(vars(base).get("_own_options", {}))
    return found


class Job:
    """Base of job classes; options are class keywords and are inherited."""

    #: The name in payloads; `module.QualName`.
    job_name: ClassVar[str]
    #: Exceptions that end the job at once, without retry and without the dead set.
    discard_on: ClassVar[tuple[type[BaseException], ...]] = ()

    _own_options: ClassVar[JobOptions] = {}
    _options: ClassVar[Options] = no_options()
    _definition: ClassVar[Definition | None] = None
    _context: JobContext | None = None

    perform_async = _PerformAsync(_doc_of("perform_async"))
    perform_in = _PerformIn(_doc_of("perform_in"))
    perform_at = _PerformAt(_doc_of("perform_at"))
    perform_bulk = _PerformBulk(_doc_of("perform_bulk"))
    aperform_async = _APerformAsync(_doc_of("aperform_async"))
    aperform_in = _APerformIn(_doc_of("aperform_in"))
    aperform_at = _APerformAt(_doc_of("aperform_at"))
    aperform_bulk = _APerformBulk(_doc_of("aperform_bulk"))
    set = _SetOptions(_doc_of("set"))

    def __init_subclass__(
        cls, *, aliases: Iterable[str] = (), **options: Unpack[JobOptions]
    ) -> None:
        """`aliases` are further names under which payloads may ask for this very class."""
        super().__init_subclass__()
        name = f"{cls.__module__}.{cls.__qualname__}"
        cls._own_options = options
        cls._options = no_options().merged(_inherited_options(cls), name)
        cls._definition = None
        perform = getattr(cls, "perform", None)
        if perform is None:
            return  # a base for other job classes
        if not callable(perform):
            raise ConfigurationError(f"{name}.perform is {perform!r}, not a method.")
        cls.job_name = qualified_name(cls)
        cls._definition = Definition(
            name=cls.job_name,
            target=cls,
            options=cls._options,
            function=perform,
            make=cls._make,
            bound=not isinstance(
                inspect.getattr_static(cls, "perform"), (classmethod, staticmethod)
            ),
            hook=functools.partial(getattr, cls),
        )
        registry.register(cls._definition, registry.as_aliases(aliases))

    # Hooks that a subclass may define, as class or static methods, with as many of the parameters
    # as it needs; hence no fixed signature here.

    @classmethod
    def retry_in(cls, *args: Any, **kwargs: Any) -> float | RetryAnswer | None:
        """`retry_in(count, error, payload)`: seconds until the next attempt; `None` for the
        default, `KILL` or `DISCARD` to give up.

        `count` is the number of failures before this one: 0 the first time. Not asked when no
        retries are left.
        """
        return None

    @classmethod
    def retries_exhausted(cls, *args: Any, **kwargs: Any) -> None:
        """`retries_exhausted(payload, error)`: called after the job went to the dead set."""

    # What a running job knows.

    @property
    def context(self) -> JobContext:
        """The run that this instance belongs to. Raises `NoJobContext` outside a worker and the
        test modes.
        """
        if self._context is None:
            raise NoJobContext(f"{type(self).__qualname__} runs outside a worker: it has no jid.")
        return self._context

    @property
    def jid(self) -> str:
        """The job's id."""
        return self.context.jid

    @property
    def attempt(self) -> int:
        """1 for the first run, 2 for the first retry …"""
        return self.context.attempt

    @property
    def payload(self) -> dict[str, Any]:
        """The job as a dict; arguments in wire form."""
        return self.context.payload

    @property
    def stopping(self) -> bool:
        """Whether the worker wants to stop."""
        return self.context.stopping

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked for this job to be cancelled."""
        return self.context.cancelled

    def at(self, percent: float, message: str = "") -> None:
        """Report progress: 0 to 100 and a short text."""
        self.context.at(percent, message)

    def store(self, **fields: Any) -> None:
        """Keep fields with the job's status."""
        self.context.store(**fields)

    # In fake mode.

    jobs = _Jobs()

    @classmethod
    def clear(cls) -> None:
        """Forget the collected jobs of this class. Raises `TestModeError` outside fake mode."""
        collecting_transport("clear").clear(cls.job_name)

    @classmethod
    def perform_one(cls) -> Any:
        """Run the oldest collected job of this class; its return value.

        Raises `EmptyQueueError` where there is none, `TestModeError` outside fake mode.
        """
        return collecting_transport("perform_one").perform_one(cls.job_name)

    @classmethod
    def drain(cls, **how: Unpack[Draining]) -> int:
        """Run the collected jobs of this class until none is left; how many ran. For `how` see
        `Draining`. Raises `TestModeError` outside fake mode.
        """
        return collecting_transport("drain").drain(cls.job_name, **how)

    @classmethod
    async def aperform_one(cls) -> Any:
        """`perform_one` for coroutines; the job runs in the thread for synchronous code."""
        return await sync_to_async(cls.perform_one)()

    @classmethod
    async def adrain(cls, **how: Unpack[Draining]) -> int:
        """`drain` for coroutines; the jobs run in the thread for synchronous code."""
        return await sync_to_async(cls.drain)(**how)

    # Inside the package.

    @classmethod
    def _make(cls, context: JobContext) -> tuple[Any, Callable[..., Any]]:
        instance = cls()
        instance._context = context
        perform: Callable[..., Any] = instance.perform  # type: ignore[attr-defined]
        return instance, perform

    @classmethod
    def _call(cls) -> Call[...]:
        if cls._definition is None:
            raise ConfigurationError(
                f"{cls.__module__}.{cls.__qualname__} has no perform method, so it cannot be enqueued."
            )
        return Call(cls._definition)
