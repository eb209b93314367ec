"""The `perform_*` methods: a job class together with the options of one call.

`Call` is what `SendReceipt.set(queue="urgent")` returns, what `SendReceipt.perform_async` goes
through, and the base of what `@job` makes. Each method has a twin with an `a` in front for
coroutines. The twins run the whole push in the thread that runs the other synchronous code of the
same coroutine, so they see its transaction and obey it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, Unpack

from asgiref.sync import sync_to_async

from django_cogworker.client import enqueue, enqueue_many
from django_cogworker.exceptions import ArgumentError
from django_cogworker.jobs.definition import Definition
from django_cogworker.jobs.options import JobOptions, Options
from django_cogworker.jobs.when import Delay, Moment, due_after, due_at

P = ParamSpec("P")
T = TypeVar("T")

Arguments = Sequence[Any] | Mapping[str, Any]


class Call(Generic[P]):
    """A job class, ready to be enqueued with its options as they are here."""

    __slots__ = ("_definition", "_options")

    def __init__(self, definition: Definition, options: Options | None = None) -> None:
        self._definition = definition
        self._options = definition.options if options is None else options

    def set(self, **options: Unpack[JobOptions]) -> Call[P]:
        """The same job with other options. Raises `UnknownOption` or `InvalidOption`."""
        merged = self._options.merged(options, f"{self._definition.name}.set()")
        return Call(self._definition, merged)

    def perform_async(self, /, *args: P.args, **kwargs: P.kwargs) -> str | None:
        """Enqueue now. Returns the jid, or `None` where a duplicate was refused.

        Inside `transaction.atomic()` the push waits for the commit; the jid is returned at once.
        Raises `ArgumentError` (arguments that do not fit or cannot travel), `PayloadTooLarge`,
        `PushError` (Redis cannot take it).
        """
        return self._enqueue(args, kwargs, None)

    def perform_in(self, delay: Delay, /, *args: P.args, **kwargs: P.kwargs) -> str | None:
        """Enqueue after `delay` (seconds or a `timedelta`). Else as `perform_async`."""
        return self._enqueue(args, kwargs, due_after(delay))

    def perform_at(self, when: Moment, /, *args: P.args, **kwargs: P.kwargs) -> str | None:
        """Enqueue at `when` (an aware `datetime` or epoch seconds). Else as `perform_async`."""
        return self._enqueue(args, kwargs, due_at(when))

    def perform_bulk(
        self, calls: Iterable[Arguments], /, *, at: Moment | None = None
    ) -> list[str | None]:
        """Enqueue many: each of `calls` is a sequence of positional or a dict of keyword arguments.

        Takes any iterable, of any size, and pushes a thousand jobs a round trip. Returns the jids
        in order, `None` for refused duplicates. Raises as `perform_async`; a `PushError` names the
        jids accepted before it.
        """
        due = None if at is None else due_at(at)
        return enqueue_many(self._payloads(calls, due), on_commit=self._options["on_commit"])

    async def aperform_async(self, /, *args: P.args, **kwargs: P.kwargs) -> str | None:
        """`perform_async` for coroutines."""
        return await _in_sync_thread(self.perform_async, *args, **kwargs)

    async def aperform_in(self, delay: Delay, /, *args: P.args, **kwargs: P.kwargs) -> str | None:
        """`perform_in` for coroutines."""
        return await _in_sync_thread(self.perform_in, delay, *args, **kwargs)

    async def aperform_at(self, when: Moment, /, *args: P.args, **kwargs: P.kwargs) -> str | None:
        """`perform_at` for coroutines."""
        return await _in_sync_thread(self.perform_at, when, *args, **kwargs)

    async def aperform_bulk(
        self, calls: Iterable[Arguments], /, *, at: Moment | None = None
    ) -> list[str | None]:
        """`perform_bulk` for coroutines."""
        return await _in_sync_thread(self.perform_bulk, calls, at=at)

    def _enqueue(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], at: float | None
    ) -> str | None:
        payload = self._definition.payload(args, kwargs, self._options, at)
        return enqueue(payload, on_commit=self._options["on_commit"])

    def _payloads(self, calls: Iterable[Arguments], at: float | None) -> Iterator[dict[str, Any]]:
        make = self._definition.payload
        for number, each in enumerate(calls):
            try:
                if isinstance(each, (tuple, list)):
                    yield make(tuple(each), {}, self._options, at)
                elif isinstance(each, Mapping):
                    yield make((), dict(each), self._options, at)
                else:
                    raise ArgumentError(
                        f"this is a {type(each).__qualname__}; each item is a tuple or list of "
                        "positional arguments, or a dict of keyword arguments."
                    )
            except ArgumentError as error:
                raise ArgumentError(f"perform_bulk, item {number}: {error}") from None


async def _in_sync_thread(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    return await sync_to_async(function, thread_sensitive=True)(*args, **kwargs)
