"""`@job`: a function as a job. It stays callable as itself.

@job(queue="low")
def rebuild_index(name: str) -> int: ...

rebuild_index.perform_async("books")
rebuild_index("books")
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, overload

from asgiref.sync import sync_to_async

from django_cogworker.client.draining import Draining
from django_cogworker.client.transport import collecting_transport
from django_cogworker.exceptions import ConfigurationError
from django_cogworker.jobs import registry
from django_cogworker.jobs.call import Call
from django_cogworker.jobs.context import JobContext
from django_cogworker.jobs.definition import Definition, qualified_name
from django_cogworker.jobs.options import JobOptions, no_options

P = ParamSpec("P")
R = TypeVar("R")

Hook = Callable[..., Any]


class FunctionJob(Call[P], Generic[P, R]):
    """A function that can be enqueued."""

    # Taken over from the function.
    __name__: str
    __qualname__: str

    def __init__(
        self,
        function: Callable[P, R],
        options: JobOptions,
        aliases: tuple[str, ...],
        hooks: dict[str, Any],
    ) -> None:
        if isinstance(function, type) or not callable(function):
            raise ConfigurationError(
                f"@job was put on {function!r}; it takes functions. Classes derive from Job."
            )
        self.job_name = qualified_name(function)
        self._function = function
        functools.update_wrapper(self, function)
        definition = Definition(
            name=self.job_name,
            target=self,
            options=no_options().merged(options, self.job_name),
            function=function,
            make=self._make,
            bound=False,
            hook=hooks.__getitem__,
        )
        super().__init__(definition)
        registry.register(definition, aliases)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function here and now; nothing is enqueued."""
        return self._function(*args, **kwargs)

    # In fake mode.

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """The payloads collected in fake mode, oldest first. Raises `TestModeError` outside it."""
        return collecting_transport("jobs").jobs(self.job_name)

    def clear(self) -> None:
        """Forget the collected jobs of this function."""
        collecting_transport("clear").clear(self.job_name)

    def perform_one(self) -> Any:
        """Run the oldest collected job. Raises `EmptyQueueError` where there is none."""
        return collecting_transport("perform_one").perform_one(self.job_name)

    def drain(self, **how: Unpack[Draining]) -> int:
        """Run the collected jobs until none is left; how many ran. For `how` see `Draining`."""
        return collecting_transport("drain").drain(self.job_name, **how)

    async def aperform_one(self) -> Any:
        """`perform_one` for coroutines."""
        return await sync_to_async(self.perform_one)()

    async def adrain(self, **how: Unpack[Draining]) -> int:
        """`drain` for coroutines."""
        return await sync_to_async(self.drain)(**how)

    def __repr__(self) -> str:
        return f"<job {self.job_name}>"

    def __reduce__(self) -> str:
        return str(self._function.__qualname__)  # pickled by reference, as functions are

    def _make(self, context: JobContext) -> tuple[Any, Callable[..., Any]]:
        return self, self._function


@overload
def job(function: Callable[P, R], /) -> FunctionJob[P, R]: ...
@overload
def job(
    *,
    aliases: Iterable[str] = (),
    discard_on: tuple[type[BaseException], ...] = (),
    retry_in: Hook | None = None,
    retries_exhausted: Hook | None = None,
    **options: Unpack[JobOptions],
) -> Callable[[Callable[P, R]], FunctionJob[P, R]]: ...
def job(
    function: Any = None,
    /,
    *,
    aliases: Iterable[str] = (),
    discard_on: tuple[type[BaseException], ...] = (),
    retry_in: Hook | None = None,
    retries_exhausted: Hook | None = None,
    **options: Unpack[JobOptions],
) -> Any:
    """Make a function a job, with options as of a job class. `@job` and `@job(…)` both work.

    `retry_in(count, error, payload)` and `retries_exhausted(payload, error)` are the hooks that a
    class has as methods.
    """
    hooks = {
        "discard_on": discard_on,
        "retry_in": retry_in,
        "retries_exhausted": retries_exhausted,
    }

    def decorate(function: Any) -> Any:
        return FunctionJob(function, options, registry.as_aliases(aliases), hooks)

    return decorate if function is None else decorate(function)
