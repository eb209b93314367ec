"""How collected jobs are to be run: the keywords of `drain` in fake mode."""

from __future__ import annotations

from typing import Literal, TypedDict

#: What becomes of an error of a job: it reaches the test, or it is a failed attempt as in a worker.
Errors = Literal["raise", "record"]
#: Where the worker that runs a job dies.
Crash = Literal["before", "after", "random", "everywhere"]


class Chaos(TypedDict, total=False):
    """What may happen to jobs that run: see `drain`."""

    run_twice: bool
    crash: Crash | None
    seed: int


class Draining(Chaos, total=False):
    """The keywords of `drain`.

    `errors="record"`: an error of a job is a failed attempt, as in a worker: retried, then dead. Without it
    the error reaches the caller. `run_twice`: each job runs twice, as it may with a worker that dies right after
    it. `crash`: the worker dies `before` the job's code, `after` it, at places drawn by `seed` (`random`), or
    before each line of it in turn (`everywhere`); the job comes back each time and runs whole in the end.
    """

    errors: Errors
