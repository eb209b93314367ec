"""Finding the server of a directory, starting it through a watchdog, stopping it.

Life story of a start: look for a server that answers and has a watchdog. None? Take the start lock
(one process at a time; who waits for it keeps looking), wait until a server that is just leaving is
gone, launch a watchdog, hear from it that the server answers, and look again. Nothing outlives the
call: no thread, no child, no open file, no variable of the module; so forks and threads do no harm.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from django_cogworker.exceptions import EmbeddedServerError
from django_cogworker.store.embedded.binary import find_binary
from django_cogworker.store.embedded.launch import PATIENCE, launch
from django_cogworker.store.embedded.locks import FileLock, is_held
from django_cogworker.store.embedded.paths import Place, check_owner, prepare
from django_cogworker.store.embedded.state import pid_namespace, read_state
from django_cogworker.store.embedded.wire import Line, Pulse, ReplyError, WireError, pulse

logger = logging.getLogger(__name__)

STOP_PATIENCE = 12.0
ASK_TIMEOUT = 2.0
POLL = 0.02


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What is known of a directory's server. The pids are None where it does not run."""

    directory: Path
    socket: Path
    running: bool
    server_pid: int | None
    watchdog_pid: int | None
    binary: Path
    version: str
    persistent: bool
    linger: float
    started_at: float  # epoch seconds


@dataclass(frozen=True, slots=True)
class Sight:
    """What a look at the directory found; only a server with a watchdog may be used."""

    socket: Path
    pulse: Pulse
    watched: bool

    @property
    def usable(self) -> bool:
        return self.watched and self.pulse is Pulse.ALIVE


class Patience:
    """Waits in small steps, and gives up when nothing has moved for long."""

    __slots__ = ("_deadline", "_place")

    def __init__(self, place: Place) -> None:
        self._place = place
        self._deadline = time.monotonic() + PATIENCE

    def check(self, sight: Sight) -> None:
        """Raise if it is over."""
        if sight.pulse is Pulse.LOADING:
            self._deadline = time.monotonic() + PATIENCE  # the watchdog bounds this
        elif time.monotonic() > self._deadline:
            raise EmbeddedServerError(
                f"The embedded server in {self._place.directory} neither answered on "
                f"{sight.socket} nor ended within {PATIENCE:g} s. {_holders(self._place)} See "
                f"{self._place.watchdog_log} and {self._place.server_log}; end these processes by "
                "hand if they hang."
            )

    def step(self, sight: Sight) -> None:
        """Wait a little, or raise if it is over."""
        self.check(sight)
        time.sleep(POLL)


def ensure(directory: Path, binary: Path | str | None, linger: float) -> Path:
    """See `ensure_server`."""
    if linger < 0:
        raise ValueError(f"linger must not be negative, and is {linger!r}")
    place = Place.at(directory)
    check_owner(place)
    if (sight := _look(place)).usable:
        return sight.socket
    prepare(place)
    patience = Patience(place)
    with FileLock(place.start_lock) as lock:
        while not lock.try_acquire():
            patience.step(sight)
            if (sight := _look(place)).usable:
                return sight.socket
        while not (sight := _look(place)).usable:
            patience.check(sight)
            if not sight.watched and not is_held(place.server_lock):
                launch(place, find_binary(binary), linger)
                continue
            if not sight.watched and sight.pulse is Pulse.ALIVE:
                # Its watchdog was killed. On Linux it is leaving anyway, elsewhere it would stay
                # for ever; a server without a watchdog is never handed out.
                _ask_to_leave(sight.socket)
            patience.step(sight)
    return sight.socket


def stop(directory: Path) -> None:
    """See `stop_server`."""
    place = Place.at(directory)
    check_owner(place)
    if not place.start_lock.exists():
        return
    patience = Patience(place)
    with FileLock(place.start_lock) as lock:
        while not lock.try_acquire():
            patience.step(_look(place))
        begun = time.monotonic()
        asked = killed = False
        while is_held(place.server_lock) or is_held(place.watchdog_lock):
            waited = time.monotonic() - begun
            if not asked:
                asked = _ask_to_leave(_look(place).socket)
            if waited > STOP_PATIENCE and not killed:
                killed = True
                _kill(place)
            if waited > STOP_PATIENCE + 5:
                raise EmbeddedServerError(
                    f"The embedded server in {place.directory} could not be stopped. "
                    f"{_holders(place)} End these processes by hand."
                )
            time.sleep(POLL)


def facts(directory: Path) -> ServerFacts | None:
    """See `server_facts`."""
    place = Place.at(directory)
    state = read_state(place.state_file)
    if state is None:
        return None
    watched, running = is_held(place.watchdog_lock), is_held(place.server_lock)
    return ServerFacts(
        directory=place.directory,
        socket=Path(state.socket),
        running=watched and running,
        server_pid=state.server_pid if running else None,
        watchdog_pid=state.watchdog_pid if watched else None,
        binary=Path(state.binary),
        version=state.version,
        persistent=state.persistent,
        linger=state.linger,
        started_at=state.started_at,
    )


def _look(place: Place) -> Sight:
    state = read_state(place.state_file)
    socket = Path(state.socket) if state else place.default_socket
    # The order matters: what answers after the watchdog was seen is that watchdog's server.
    watched = is_held(place.watchdog_lock)
    return Sight(socket, pulse(socket), watched)


def _ask_to_leave(socket: Path) -> bool:
    """Tell the server itself to stop, which needs no pid. False if it could not be reached."""
    try:
        line = Line(socket, ASK_TIMEOUT)
    except WireError as error:
        logger.debug("No server to stop (yet, or any more): %s", error)
        return False
    with line:
        try:
            line.call("SHUTDOWN", "NOSAVE")  # no RDB file; the append-only file is written out
        except ReplyError as error:
            logger.warning("The embedded server refuses to stop: %s", error)
        except WireError as error:
            logger.debug("SHUTDOWN, which has no answer: %s", error)
    return True


def _kill(place: Place) -> None:
    state = read_state(place.state_file)
    if state is None or state.namespace != pid_namespace():
        return
    for pid, lock in (
        (state.watchdog_pid, place.watchdog_lock),
        (state.server_pid, place.server_lock),
    ):
        # Who holds the lock is alive, so the pid has not been given to another process.
        if pid is not None and is_held(lock):
            logger.warning("Killing process %d of the embedded server in %s", pid, place.directory)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                logger.info("Process %d has just ended", pid)


def _holders(place: Place) -> str:
    state = read_state(place.state_file)
    if state is None:
        return "Its processes are not known."
    where = "" if state.namespace == pid_namespace() else " (in another container)"
    return f"Its watchdog is process {state.watchdog_pid}, the server {state.server_pid}{where}."
