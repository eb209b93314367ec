"""The supervisor: the parent of several worker processes.

It runs no jobs, starts no thread, and speaks neither to Redis nor to a database. On its main thread
it goes round, at the latest every 0.2 s and at once when something happens:

words that signal handlers left → what the children tell → children that have ended → the next step of a
replacement one by one → empty places that are due → stragglers that do not stop → health probes.

A child that is lost is told to the others, so that its jobs are recovered at once and the reason names
how it ended. `USR2` brings new code: the supervisor executes itself anew (`renewal`), keeps its
children, and replaces one after the other: stop the old, wait, start the new, wait until it is ready.
In a child of a fork `run` returns with its side of the line, and the process goes on as a worker.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from collections.abc import Sequence
from typing import Any

from django_cogworker import __version__
from django_cogworker.worker.bell import Bell
from django_cogworker.worker.children import (
    BecameChild,
    Child,
    choose_method,
    close_everything,
    make_child,
)
from django_cogworker.worker.health import Report, Verdict, judge
from django_cogworker.worker.health_door import HealthDoor
from django_cogworker.worker.line import Line
from django_cogworker.worker.renewal import Renewal, handed_over
from django_cogworker.worker.respawn import Respawn
from django_cogworker.worker.supervision import GRACE, RENEWED, Loss, Supervision
from django_cogworker.worker.untold import Untold

logger = logging.getLogger("django_cogworker")

#: Seconds that one round lasts at the most.
ROUND = 0.2
#: Seconds that a child may take to go once it has said that it ends.
GOING = 10.0


class Supervisor:
    """One supervisor of `processes` workers."""

    #: Whether its workers end when a file of the project has changed.
    watches = False

    def __init__(
        self,
        processes: int,
        *,
        shutdown_timeout: float,
        burst: bool = False,
        method: str | None = None,
        door: HealthDoor | None = None,
    ) -> None:
        """`burst`: a worker that ends by itself is not replaced. `method`: `fork` or `spawn`; by
        default what is safe here. `door`: where probes ask for all workers.
        """
        self._door = door
        self._method = method
        self._patience = shutdown_timeout + GRACE
        self._burst = burst
        self._bell = Bell()
        self._children: dict[int, Child] = {}
        self._respawns = [Respawn() for _ in range(processes)]
        self._quiet = [False] * processes
        self._done: set[int] = set()
        self._untold = Untold()
        self._renewal = Renewal()
        self._rolling = False
        self._stopping = False
        self._killed = 0

    # The life.

    def run(self) -> Supervision | None:
        """Supervise until the end. `None` then; in a forked child at once its side of the line.

        Raises `ChildProcessError` after a stop for which a child had to be killed.
        """
        try:
            with self._bell.handlers():
                self._begin()
                while not self._is_over():
                    self._turn()
                    self._bell.wait([*self._open_lines(), *self._open_sockets()], ROUND)
                self._renewal.end()
        except BecameChild as became:
            return became.supervision
        finally:
            self._bell.close()
            if self._door is not None:
                self._door.close()
        logger.info("The supervisor has ended.")
        if self._killed:
            raise ChildProcessError(f"{self._killed} workers did not stop in time and were killed.")
        return None

    def _begin(self) -> None:
        left = handed_over()
        if left is not None:
            self._children = {each.slot: each for each in left.children}
            self._untold.losses = left.untold
            self._rolling = True
            logger.info("The supervisor runs the new code; %d workers follow.", len(self._children))
        self._greet()

    def _greet(self) -> None:
        logger.info(
            "django-cogworker %s supervises %d workers, pid %d.",
            __version__,
            len(self._respawns),
            os.getpid(),
        )

    def _is_over(self) -> bool:
        if self._children:
            return False
        return self._stopping or len(self._done) == len(self._respawns)

    def _turn(self) -> None:
        self._act_on_words()
        for child in list(self._children.values()):
            self._listen_to(child)
        self._reap()
        self._renew()
        self._roll()
        self._fill_places()
        self._kill_stragglers()
        if self._door is not None:
            self._door.turn(self._verdict)

    # Words.

    def _act_on_words(self) -> None:
        while self._bell.words:
            word = self._bell.words.popleft()
            if word in ("TERM", "INT"):
                self._stop(word)
            elif word in ("TSTP", "TTIN"):
                logger.info("%s: told to all workers.", word)
                for child in self._children.values():
                    self._signal(child, f"SIG{word}")
            elif word == "USR2":
                self._begin_renewal()
            elif word != "CHLD":
                logger.warning("The signal %s means nothing to a supervisor.", word)

    def _stop(self, word: str) -> None:
        again, self._stopping, self._rolling = self._stopping, True, False
        logger.info(
            "%s: %s %d workers.", word, "hurrying" if again else "stopping", len(self._children)
        )
        for child in self._children.values():
            if again:
                self._signal(child, "SIGTERM")
            elif not child.asked:  # another one would mean "at once" to it
                self._ask_to_stop(child)

    # Children.

    def _open_lines(self) -> list[Line]:
        return [each.line for each in self._children.values() if not each.line.ended]

    def _open_sockets(self) -> Sequence[socket.socket]:
        return () if self._door is None else self._door.open_sockets

    def _listen_to(self, child: Child) -> None:
        while not child.line.ended and (messages := child.line.hear()):
            for words in messages:
                self._heard(child, words)

    def _heard(self, child: Child, words: dict[str, Any]) -> None:
        child.heard_at = time.monotonic()
        child.identity = str(words.get("identity", child.identity))
        child.quiet = bool(words.get("quiet", child.quiet))
        if "ending" in words:
            child.ending = str(words["ending"])
            child.kill_at = min(child.kill_at or time.monotonic() + GOING, time.monotonic() + GOING)
        if "health" in words:
            child.health = _read_health(words["health"]) or child.health
        if "noted" in words:
            self._untold.noted(str(words["noted"]))
        if words.get("ready") and not child.ready:
            child.ready = True
            self._untold.tell_all(child.line)

    def _reap(self) -> None:
        for child in list(self._children.values()):
            try:
                pid, status = os.waitpid(child.pid, os.WNOHANG)
            except ChildProcessError:
                logger.error("Worker %d ended; nobody knows how.", child.pid)
                pid, status = child.pid, 0
            if pid:
                self._listen_to(child)  # its last words
                child.line.close()
                del self._children[child.slot]
                self._ended(child, os.waitstatus_to_exitcode(status))

    def _ended(self, child: Child, code: int) -> None:
        now = time.monotonic()
        lived, slot = now - child.since, child.slot
        if code == 0 and child.ending:
            logger.info("Worker %d has ended (%s).", child.pid, child.ending)
            self._quiet[slot] = child.quiet and child.ending in RENEWED
            if self._stopping or child.asked or child.ending in RENEWED:
                self._respawns[slot].replaced(now)
            elif self._burst:
                self._done.add(slot)
            else:
                self._respawns[slot].crashed(now, lived)
            return
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        loss = Loss(child.pid, child.identity, how, round(time.time(), 3), round(lived, 3))
        self._untold.add(loss, [each.line for each in self._children.values() if each.ready])
        self._quiet[slot] = child.quiet and not child.asked
        if self._stopping:
            logger.error("Worker %d was lost at the stop (%s).", child.pid, how)
            return
        again = self._when_again(child, code, lived)
        logger.error(
            "Worker %d was lost (%s) after %.1f s; %s another one.", child.pid, how, lived, again
        )
        if self._rolling and not child.old and not child.ready:
            self._rolling = False
            logger.error(
                "The new code does not start (%s); the replacement stops here, and %d workers go on "
                "with the old code.",
                how,
                sum(each.old for each in self._children.values()),
            )

    def _when_again(self, child: Child, code: int, lived: float) -> str:
        """Decide when the place of a lost worker is filled, and say it."""
        now, wait = time.monotonic(), 0.0
        if child.asked:
            self._respawns[child.slot].replaced(now)
        else:
            wait = self._respawns[child.slot].crashed(now, lived)
        return f"in {wait:.0f} s" if wait else "at once"

    def _fill_places(self) -> None:
        if self._stopping:
            return
        for slot, respawn in enumerate(self._respawns):
            if slot in self._children or slot in self._done or not respawn.is_due(time.monotonic()):
                continue
            ours = [self._bell] if self._door is None else [self._bell, self._door]
            others = [each.line for each in self._children.values()]
            close_everything()  # a pool of the database has threads, and with those nobody forks
            method = choose_method(self._method)
            try:
                child = make_child(
                    method,
                    slot,
                    [*others, *ours],
                    quiet=self._quiet[slot],
                    watches=self.watches,
                )
            except OSError as error:
                wait = respawn.crashed(time.monotonic(), 0)
                logger.error(
                    "No worker can be started (%s); tried again in %.0f s.", error, max(wait, ROUND)
                )
                continue
            logger.info("Worker %d started (%s).", child.pid, method)
            self._children[slot] = child

    def _kill_stragglers(self) -> None:
        for child in self._children.values():
            if child.kill_at is None or child.killed or time.monotonic() < child.kill_at:
                continue
            child.killed = True
            self._killed += self._stopping
            logger.error("Worker %d does not stop; it is killed.", child.pid)
            self._signal(child, "SIGKILL")

    def _ask_to_stop(self, child: Child) -> None:
        child.asked = True
        child.kill_at = time.monotonic() + self._patience
        self._signal(child, "SIGTERM")

    @staticmethod
    def _signal(child: Child, name: str) -> None:
        # Not reaped yet, so the pid is still its own.
        os.kill(child.pid, getattr(signal, name))

    # Health.

    def _verdict(self) -> Verdict:
        """All places together. That the supervisor itself turns is shown by the answer."""
        places = [each for each in range(len(self._respawns)) if each not in self._done]
        children = [self._children.get(each) for each in places]
        return judge([None if each is None else each.report() for each in children])

    # New code.

    def _begin_renewal(self) -> None:
        if self._stopping or self._renewal.is_under_way:
            return
        logger.info("USR2: trying whether the new code starts.")
        try:
            self._renewal.begin()
        except OSError as error:
            logger.error("The new code cannot be tried (%s).", error)

    def _renew(self) -> None:
        how = None if self._stopping else self._renewal.verdict()
        if how is None:
            return
        if how:
            logger.error("The new code does not start (%s); all go on with the old one.", how)
            return
        self._renewal.execute(list(self._children.values()), self._untold.losses)

    def _roll(self) -> None:
        """The next step of the replacement one by one, once every place has a worker that is ready."""
        if not self._rolling:
            return
        if any(
            (child := self._children.get(slot)) is None or not child.ready or child.asked
            for slot in range(len(self._respawns))
            if slot not in self._done
        ):
            return
        old = next((each for each in self._children.values() if each.old), None)
        if old is None:
            self._rolling = False
            logger.info("All %d workers run the new code.", len(self._children))
            return
        logger.info("Worker %d is replaced by one with the new code.", old.pid)
        self._ask_to_stop(old)


def _read_health(words: Any) -> Report | None:
    try:
        return Report.read(words)
    except (KeyError, TypeError, ValueError):
        return None  # a child of another version
