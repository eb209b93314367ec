"""The launcher: a worker from start to stop, on the main thread.

Start: identity → signal handlers → first beat (repeated until Redis answers) → processors and
fetcher → scheduler → recovery → one line that sums it up. Then it waits for words: from signal
handlers, which only leave a word, and from remote commands. Stop: the manager brings all jobs to
their place, then the scheduler, the beat and the presence end.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

import redis

from django_cogworker import __version__
from django_cogworker.conf import Config
from django_cogworker.store.store import Store
from django_cogworker.worker.children import allow_signals
from django_cogworker.worker.death import DeathHooks
from django_cogworker.worker.heartbeat import Heartbeat
from django_cogworker.worker.identity import Membership
from django_cogworker.worker.limits import Limits
from django_cogworker.worker.manager import Manager
from django_cogworker.worker.outage import Outage
from django_cogworker.worker.recovery import Recovery
from django_cogworker.worker.scheduler import Scheduler
from django_cogworker.worker.stacks import all_stacks
from django_cogworker.worker.supervision import GRACE, Loss, Supervision
from django_cogworker.worker.threads import start_thread

logger = logging.getLogger("django_cogworker")

#: Seconds between looks of the main thread at what handlers and others left for it.
GLANCE = 0.25
#: What each signal means; those that a platform lacks are left away.
SIGNALS = {"SIGTERM": "stop", "SIGINT": "stop", "SIGTSTP": "quiet", "SIGTTIN": "stacks"}

#: How long the stop waits for a beat that is under way (seconds).
LAST_BEAT = 5.0


class Launcher:
    """One worker. `run` returns when it has stopped in good order."""

    def __init__(
        self,
        store: Store,
        config: Config,
        *,
        burst: bool = False,
        limits: Limits | None = None,
        supervision: Supervision | None = None,
    ) -> None:
        """`burst`: stop as soon as nothing is waiting on the worker's queues. `limits` of its life;
        `supervision`: the line to its supervisor, where it has one.
        """
        self._limits = limits or Limits()
        self._supervision = supervision
        self._ending = "stopped"
        supervisor = None if supervision is None else supervision.supervisor
        self._store = store
        self._config = config
        self._burst = burst
        self._words: SimpleQueue[str] = SimpleQueue()
        self._stops = 0
        self._membership = Membership()
        self._heartbeat_thread: threading.Thread | None = None
        self._outage = Outage(store.description)
        self._scheduler = Scheduler(store=store, outage=self._outage)
        death = DeathHooks(config)
        self._manager = Manager(
            store=store,
            config=config,
            membership=self._membership,
            outage=self._outage,
            due_in=self._scheduler.due_in,
            death=death,
            may_start=lambda: self._heartbeat.is_fresh(),
            job_ended=self._limits.job_ended,
        )
        self._heartbeat = Heartbeat(
            store=store,
            config=config,
            membership=self._membership,
            outage=self._outage,
            started_file=self._manager.started.name,
            busy=lambda: self._manager.busy,
            command=self._words.put,
            supervisor=supervisor,
        )
        self._membership.renewed = self._identity_renewed
        self._recovery = Recovery(
            store=store,
            config=config,
            membership=self._membership,
            outage=self._outage,
            death=death,
            supervisor=supervisor,
        )

    @property
    def identity(self) -> str:
        return self._membership.identity

    def stop(self) -> None:
        """Ask the worker to stop, from any thread. A second time: at once."""
        self._hear("stop")

    def run(self) -> None:
        """Start, work, and return after the stop."""
        with self._signal_handlers():
            if not self._start():
                logger.info("Stopped before the first job.")
                self._tell_supervisor(ending=self._ending)
                return
            try:
                self._work()
            finally:
                self._end()
                self._tell_supervisor(ending=self._ending)

    # Start.

    def _start(self) -> bool:
        if self._supervision is not None:
            self._heartbeat.quiet = self._scheduler.quiet = self._supervision.quiet
            start_thread("supervision", self._listen_to_supervisor)
        if not self._heartbeat.first_beat(give_up=self._asked_to_stop):
            return False
        self._look_at_server()
        self._heartbeat_thread = start_thread("heartbeat", self._heartbeat.loop)
        if self._heartbeat.quiet:
            logger.info("Quiet from the start, as asked.")
        self._manager.start(quiet=self._heartbeat.quiet)
        start_thread("scheduler", self._scheduler.loop)
        start_thread("recovery", self._recovery.loop)
        queues = ", ".join(
            each.name if each.weight == 1 else f"{each.name} x{each.weight}"
            for each in self._config.queues
        )
        logger.info(
            "django-cogworker %s works as %s: %d processors, queues %s (%s), Redis at %s%s.",
            __version__,
            self.identity,
            self._config.concurrency,
            queues,
            self._config.queue_order,
            self._store.description,
            "" if self._store.reliable else ", basic mode",
        )
        self._tell_supervisor(identity=self.identity, ready=True, quiet=self._heartbeat.quiet)
        return True

    def _look_at_server(self) -> None:
        try:
            self._store.choose_mode()
            for each in self._store.durability_warnings():
                logger.warning(each)
        except (redis.RedisError, OSError) as error:
            self._outage.failed("Looking at the server", error)

    def _asked_to_stop(self) -> bool:
        """While Redis is still away at the start: act on the words that came meanwhile."""
        while True:
            try:
                word = self._words.get_nowait()
            except Empty:
                return self._stops > 0
            if word == "quiet":
                self._heartbeat.quiet = True
                self._scheduler.quiet = True
            elif word == "stacks":
                logger.warning("The stacks of all threads:\n%s", all_stacks())

    # Work.

    def _work(self) -> None:
        if self._burst:
            start_thread("burst", self._stop_when_drained)
        if self._limits.exist:
            start_thread("limits", lambda: self._limits.watch(self._make_room))
        while True:
            try:
                # A signal that comes just before the wait does not wake it: look now and then.
                word = self._words.get(timeout=GLANCE)
            except Empty:
                continue
            if word == "stop":
                self._stops = max(self._stops, 1)
                return
            if word == "quiet":
                self._set_quiet(True)
            elif word == "resume":
                if self._ending == "recycled":
                    logger.info("Not working again: this worker is about to end.")
                else:
                    self._set_quiet(False)
            elif word == "stacks":
                logger.warning("The stacks of all threads:\n%s", all_stacks())
            else:
                logger.warning("The word %r means nothing to a worker.", word)

    def _stop_when_drained(self) -> None:
        """Stop when nothing is left, also of what dead workers held."""
        self._recovery.decided.wait()
        self._manager.fetcher.look_again()
        self._manager.fetcher.drained.wait()
        if self._ending != "recycled":
            self._ending = "drained"
        self._words.put("stop")

    def _make_room(self, reason: str) -> None:
        """A limit is reached: let the running jobs end, then stop."""
        logger.info("Making room for a fresh worker: %s.", reason)
        self._ending = "recycled"
        self._words.put("quiet")
        nap = threading.Event()
        while not (self._heartbeat.quiet and self._manager.is_idle):
            nap.wait(0.02)
        self._words.put("stop")

    def _set_quiet(self, quiet: bool) -> None:
        if quiet == self._heartbeat.quiet:
            return
        self._heartbeat.quiet = quiet
        if quiet:
            self._scheduler.quiet = True
            self._manager.quiet()
            logger.info("Quiet: running jobs go on, no further ones are fetched.")
        else:
            self._scheduler.resume()
            self._manager.resume()
            logger.info("Working again.")
        self._heartbeat.now()
        # A replacement because of a limit is to work, unless this one was quiet before.
        if self._ending != "recycled":
            self._tell_supervisor(quiet=quiet)

    # The supervisor.

    def _tell_supervisor(self, **words: Any) -> None:
        if self._supervision is not None:
            self._supervision.tell(**words)

    def _identity_renewed(self) -> None:
        self._heartbeat.now()
        self._tell_supervisor(identity=self.identity)

    def _listen_to_supervisor(self) -> None:
        if self._supervision is not None:
            self._supervision.listen(
                stop=self._stop_by_itself,
                lost=self._neighbour_lost,
                patience=self._config.shutdown_timeout + GRACE,
            )

    def _stop_by_itself(self) -> None:
        self._stops = max(self._stops, 1)
        self._words.put("stop")

    def _neighbour_lost(self, loss: Loss) -> None:
        self._recovery.told(loss, lambda: self._tell_supervisor(noted=loss.name))

    # Stop.

    def _end(self) -> None:
        logger.info("Stopping.")
        self._heartbeat.quiet = True
        self._scheduler.quiet = True
        self._heartbeat.now()
        self._manager.stop(at_once=lambda: self._stops > 1)
        self._scheduler.end()
        self._recovery.end()
        self._heartbeat.end()
        if self._heartbeat_thread is not None:
            # A beat that is still under way would bring the presence back.
            self._heartbeat_thread.join(LAST_BEAT)
        try:
            self._store.leave(self.identity, self._heartbeat.host_id)
        except (redis.RedisError, OSError) as error:
            logger.warning(
                "The worker's presence could not be taken away (%s); it ends by itself.", error
            )
        logger.info("Stopped.")

    # Signals.

    def _hear(self, word: str) -> None:
        if word == "stop":
            self._stops += 1
        self._words.put(word)

    @contextmanager
    def _signal_handlers(self) -> Iterator[None]:
        """Our handlers while the worker runs; the ones from before afterwards. Only the main thread
        may set any.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handle(number: int, frame: FrameType | None) -> None:
            # Ctrl-C reaches the whole group of processes; the supervisor passes it on as TERM.
            if number != signal.SIGINT or self._supervision is None:
                self._hear(SIGNALS[signal.Signals(number).name])

        before: dict[int, Any] = {}
        for name in SIGNALS:
            number = getattr(signal, name, None)
            if number is not None:
                before[number] = signal.signal(number, handle)
        if self._supervision is not None:
            allow_signals()
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)
