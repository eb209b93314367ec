"""The launcher: a worker from start to stop, on the main thread.

Start: identity → signal handlers → first beat (repeated until Redis answers) → processors and
fetcher → scheduler → recovery → one line that sums it up. Then it waits for words: from signal
handlers, which only leave a word, and from remote commands. Stop: the manager brings all jobs to
their place, then the scheduler, the beat and the presence end.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

import redis

from django_cogworker import __version__
from django_cogworker.conf import Config
from django_cogworker.features import registry as features
from django_cogworker.store.store import Store
from django_cogworker.worker.bulletin import Bulletin
from django_cogworker.worker.children import allow_signals
from django_cogworker.worker.death import DeathHooks
from django_cogworker.worker.files import wait_for_change
from django_cogworker.worker.health import Health, Report, judge
from django_cogworker.worker.health_door import HealthDoor
from django_cogworker.worker.health_file import HealthFile, project_mark
from django_cogworker.worker.heartbeat import Heartbeat
from django_cogworker.worker.identity import Membership
from django_cogworker.worker.limits import Limits
from django_cogworker.worker.manager import Manager
from django_cogworker.worker.outage import Outage
from django_cogworker.worker.recovery import Recovery
from django_cogworker.worker.scheduler import Scheduler
from django_cogworker.worker.stacks import all_stacks
from django_cogworker.worker.strays import Strays
from django_cogworker.worker.supervision import GRACE, Loss, Supervision
from django_cogworker.worker.threads import start_thread
from django_cogworker.worker.upkeep import Upkeep
from django_cogworker.worker.watchdog import Watchdog
from django_cogworker.worker.words import GLANCE, Words

logger = logging.getLogger("django_cogworker")

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
        watchdog: float | None = None,
        door: HealthDoor | None = None,
        supervision: Supervision | None = None,
    ) -> None:
        """`burst`: stop as soon as nothing is waiting on the worker's queues. `limits` of its life;
        `watchdog`: seconds after which it ends when a loop is stuck; `door`: where probes ask;
        `supervision`: the line to its supervisor, where it has one.
        """
        self._limits = limits or Limits()
        self._supervision = supervision
        self._door = door
        self._ending = "stopped"
        supervisor = None if supervision is None else supervision.supervisor
        self._store = store
        self._config = config
        self._burst = burst
        self._words = Words()
        self._membership = Membership()
        self._health = Health(
            identity=lambda: self.identity,
            is_ready=lambda: bool(self._membership.present) and not self._heartbeat.quiet,
        )
        self._main_turned = self._health.loop("main")
        self._health_file = HealthFile(project_mark(store.description, config.key_prefix))
        self._watchdog = Watchdog(
            self._health,
            limit=watchdog,
            publish=self._publish_health,
            timer=threading.current_thread() is threading.main_thread(),
        )
        self._heartbeat_thread: threading.Thread | None = None
        self._outage = Outage(store.description)
        self._scheduler = Scheduler(
            store=store, outage=self._outage, turned=self._health.loop("scheduler")
        )
        death = DeathHooks(config)
        bulletin = Bulletin()
        self._manager = Manager(
            store=store,
            config=config,
            membership=self._membership,
            outage=self._outage,
            due_in=self._scheduler.due_in,
            death=death,
            may_start=lambda: self._heartbeat.is_fresh(),
            bulletin=bulletin,
            health=self._health,
            job_ended=self._limits.job_ended,
        )
        self._heartbeat = Heartbeat(
            store=store,
            config=config,
            membership=self._membership,
            outage=self._outage,
            turned=self._health.loop("heartbeat"),
            bulletin=bulletin,
            started_file=self._manager.started.name,
            busy=lambda: self._manager.busy,
            async_busy=lambda: self._manager.async_busy,
            command=self._words.put,
            supervisor=supervisor,
        )
        self._upkeep = Upkeep(
            store=store,
            config=config,
            membership=self._membership,
            outage=self._outage,
            strays=Strays(
                store=store,
                fetcher=self._manager.fetcher,
                membership=self._membership,
            ),
            turned=self._health.loop("upkeep"),
            keep=self._manager.started.keep,
        )
        self._outage.wrong_type = self._upkeep.suspect
        self._membership.renewed = self._identity_renewed
        self._recovery = Recovery(
            store=store,
            config=config,
            membership=self._membership,
            outage=self._outage,
            death=death,
            turned=self._health.loop("recovery"),
            supervisor=supervisor,
        )

    @property
    def identity(self) -> str:
        return self._membership.identity

    @property
    def fates_known(self) -> bool:
        return self._recovery.fates_known

    def give_up(self, payload: dict[str, Any], error: BaseException) -> None:
        """Wait no longer, at the end, for the job that runs with this payload."""
        self._manager.give_up(payload, error)

    def recycle(self, reason: str) -> None:
        """Ask the worker, from any thread, to make room for another when its running jobs have ended."""
        if self._ending != "recycled":
            start_thread("recycling", lambda: self._make_room(reason))

    def reload(self, path: str) -> None:
        """The code has changed: stop in good order, from any thread, for a worker with the new code."""
        logger.info("%s has changed: running jobs end, then the new code is loaded.", path)
        self._ending = "reloaded"
        self._words.stop_once()

    def stop(self) -> None:
        """Ask the worker to stop, from any thread. A second time: at once."""
        self._words.hear("stop")

    def run(self) -> None:
        """Start, work, and return after the stop."""
        with self._words.from_signals(ignore_interrupt=self._supervision is not None):
            if self._supervision is not None:
                allow_signals()
            if not self._start():
                self._end_health()
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
        self._main_turned()
        start_thread("watchdog", self._watchdog.loop)
        if self._door is not None:
            start_thread("health-door", self._answer_probes)
        if self._supervision is not None:
            self._heartbeat.quiet = self._scheduler.quiet = self._supervision.quiet
            start_thread("supervision", self._listen_to_supervisor)
            if self._supervision.watches:
                start_thread("files", lambda: wait_for_change(self.reload))
        if not self._heartbeat.first_beat(give_up=self._asked_to_stop):
            return False
        self._look_at_server()
        self._heartbeat_thread = start_thread("heartbeat", self._heartbeat.loop)
        for hook in features.taking_part("attached"):
            hook(self)
        if self._heartbeat.quiet:
            logger.info("Quiet from the start, as asked.")
        self._manager.start(quiet=self._heartbeat.quiet)
        start_thread("scheduler", self._scheduler.loop)
        start_thread("recovery", self._recovery.loop)
        start_thread("upkeep", self._upkeep.loop)
        queues = ", ".join(
            each.name if each.weight == 1 else f"{each.name} x{each.weight}"
            for each in self._config.processor_queues
        )
        loop = ""
        if self._config.async_queues:
            names = ", ".join(self._config.async_queues)
            loop = f", {self._config.async_concurrency} slots for async queues {names}"
        logger.info(
            "django-cogworker %s works as %s: %d processors, queues %s (%s)%s, Redis at %s%s.",
            __version__,
            self.identity,
            self._config.concurrency,
            queues or "none",
            self._config.queue_order,
            loop,
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
        self._main_turned()
        while (word := self._words.next(0)) is not None:
            if word == "quiet":
                self._heartbeat.quiet = True
                self._scheduler.quiet = True
            elif word == "stacks":
                logger.warning("The stacks of all threads:\n%s", all_stacks())
        return self._words.stops > 0

    # Work.

    def _work(self) -> None:
        if self._burst:
            start_thread("burst", self._stop_when_drained)
        if self._limits.exist:
            start_thread("limits", lambda: self._limits.watch(self._make_room))
        while True:
            self._main_turned()
            word = self._words.next(GLANCE)
            if word is None:
                continue
            if word == "stop":
                self._words.stops = max(self._words.stops, 1)
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
        while not (self._heartbeat.quiet and self._manager.may_end):
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
                stop=self._words.stop_once,
                lost=self._neighbour_lost,
                patience=self._config.shutdown_timeout + GRACE,
            )

    def _neighbour_lost(self, loss: Loss) -> None:
        self._recovery.told(loss, lambda: self._tell_supervisor(noted=loss.name))

    # Health.

    def _answer_probes(self) -> None:
        if self._door is not None:
            self._door.loop(lambda: judge([self._health.report()]))

    def _publish_health(self, report: Report) -> None:
        self._health_file.write(report)
        if self._supervision is not None:
            self._supervision.tell_health(report)

    def _end_health(self) -> None:
        self._watchdog.end()
        self._health_file.remove()

    # Stop.

    def _end(self) -> None:
        logger.info("Stopping.")
        self._heartbeat.quiet = True
        self._scheduler.quiet = True
        self._heartbeat.now()
        self._health.ended("main")  # it waits for jobs now, which may last
        self._manager.stop(at_once=lambda: self._words.stops > 1)
        self._end_health()
        self._scheduler.end()
        self._recovery.end()
        self._upkeep.end()
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
