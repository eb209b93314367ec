"""The watchdog: a small process that owns the embedded server, and ends it when nobody needs it.

Life story: `ensure_server` starts it as `python -m django_cogworker.store.embedded.watchdog`; it
leaves the caller's session and process tree (a Ctrl-C in the terminal never reaches it), takes the
locks, clears what a killed server left, starts the server as its child and reports on standard
output, one JSON object a line. From then on it looks about once a second whether the server has
clients. None for the linger time: it takes the socket's name away, makes sure that nobody came in
at the last moment, and stops the server. On Linux the kernel stops the server if the watchdog is
killed (the parent-death signal, which is why the server has to be the child of this process and its
only thread).

It starts the server once. When the server dies, the watchdog leaves, and the next `ensure_server`
starts both again.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from django_cogworker.store.embedded.clients import Census, Clients
from django_cogworker.store.embedded.config import server_command
from django_cogworker.store.embedded.locks import FileLock
from django_cogworker.store.embedded.logs import advice, note, size, tail, trim
from django_cogworker.store.embedded.paths import Place, closed_door
from django_cogworker.store.embedded.state import State, pid_namespace
from django_cogworker.store.embedded.wire import Pulse, pulse

START_TIMEOUT = 30.0
LOADING_TIMEOUT = 600.0
STOP_TIMEOUT = 10.0
TICK = 1.0
PR_SET_PDEATHSIG = 1


class StartFailed(Exception):
    """The server did not come up; the text is for the caller of `ensure_server`."""


class Watchdog:
    """Owns one server, from its start to its end."""

    def __init__(self, place: Place, state: State) -> None:
        self.place = place
        self.state = state
        self.socket = Path(state.socket)
        self.lock = FileLock(place.watchdog_lock)
        self.stop_signal: int | None = None
        self.clients = Clients(self.socket)
        self.server: subprocess.Popen[bytes] | None = None
        self.wakeup, wakeup_write = os.pipe()
        for fd in (self.wakeup, wakeup_write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wakeup_write)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked_to_stop)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)  # only to wake the loop
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def run(self) -> None:
        """The whole life."""
        server_lock = FileLock(self.place.server_lock)
        # Others may hold these for a moment while they look whether they are held.
        if not (_acquire(self.lock) and _acquire(server_lock)):
            report(event="busy")
            return
        try:
            server = self._start(server_lock)
        except StartFailed as failure:
            note(f"start failed: {failure}")
            self.lock.release()  # first, so that who reads the report may try again at once
            report(event="failed", reason=str(failure))
            return
        note(f"server {server.pid} of {self.state.binary} runs on {self.socket}")
        report(event="ready")
        self._leave_output()
        self._watch(server)
        self.lock.release()

    # -- start

    def _start(self, server_lock: FileLock) -> subprocess.Popen[bytes]:
        # The server lock is ours, so no server lives here: what lies around is stale.
        self.socket.unlink(missing_ok=True)
        closed_door(self.socket).unlink(missing_ok=True)
        self.state.write(self.place.state_file)  # without a pid: the one of a former server is void
        trim(self.place.server_log)
        offset = size(self.place.server_log)
        command = server_command(
            Path(self.state.binary),
            config=self.place.config_file,
            socket=self.socket,
            data=self.place.data,
            persistent=self.state.persistent,
        )
        with self.place.server_log.open("ab") as output:
            try:
                server = self.server = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=self.place.data,
                    pass_fds=(server_lock.fd,),
                    preexec_fn=_die_with_parent(),
                )
            except (OSError, subprocess.SubprocessError) as error:
                server_lock.release()
                raise StartFailed(f"{command[0]} cannot be run: {error}.") from error
        server_lock.hand_over()  # from here on the kernel ties it to the server's life
        self.state = replace(self.state, server_pid=server.pid)
        self.state.write(self.place.state_file)
        self._await_answer(server, offset)
        return server

    def _await_answer(self, server: subprocess.Popen[bytes], offset: int) -> None:
        begun = time.monotonic()
        patience, reported = START_TIMEOUT, begun
        while (found := pulse(self.socket)) is not Pulse.ALIVE:
            now = time.monotonic()
            if found is Pulse.LOADING:
                patience = LOADING_TIMEOUT
                if now - reported > TICK:
                    reported = now
                    report(event="loading")
            lines = tail(self.place.server_log, offset)
            if (code := server.poll()) is not None:
                how = f"exit code {code}" if code >= 0 else f"signal {-code}"
                self._failed(f"The server {self.state.binary} ended while starting ({how})", lines)
            if self.stop_signal is not None or now - begun > patience:
                why = (
                    "was told to stop" if self.stop_signal else f"gave no answer in {patience:g} s"
                )
                self.end_server()
                self._failed(f"The server {self.state.binary} {why}", lines)
            self._sleep(0.01)

    def _failed(self, what: str, lines: list[str]) -> None:
        said = "".join(f"\n  {line}" for line in lines) or " nothing"
        raise StartFailed(
            f"{what}. {advice(lines, self.place.data)} "
            f"Its log, {self.place.server_log}, says:{said}"
        )

    # -- watch

    def _watch(self, server: subprocess.Popen[bytes]) -> None:
        linger = self.state.linger
        tick = min(TICK, linger / 4) if linger else TICK
        last: Census | None = None
        busy_at = time.monotonic()
        while True:
            self._sleep(tick)
            if (code := server.poll()) is not None:
                note(f"server ended with code {code}")
                return
            if self.stop_signal is not None:
                return self._retire(f"signal {self.stop_signal}")
            if not self.lock.still_there():
                # Somebody removed the directory: a second server may start there at any moment.
                return self._retire(f"{self.place.directory} was removed or replaced")
            if not self.socket.exists():
                return self._retire(f"{self.socket} was removed, nobody can connect any more")
            trim(self.place.server_log)
            trim(self.place.watchdog_log)
            census = self.clients.census()
            # A server too busy to answer is in use. A connection that came and went counts as well.
            if census is None or census.others or census != last:
                busy_at, last = time.monotonic(), census
            elif linger and time.monotonic() - busy_at >= linger and self.clients.shut_out(census):
                return self._retire(f"no client for {linger:g} s")

    # -- end

    def _retire(self, why: str) -> None:
        note(f"stopping the server: {why}")
        door = closed_door(self.socket)
        if not self.lock.still_there():
            # What has our names now may be another server's, and one that ends in peace removes
            # the socket of that name. Its data are gone with the directory anyway.
            self.end_server(signal.SIGKILL)
            return
        if self.socket.exists():
            # Nobody new from here on: they shall wait for the next server, not lose this one.
            os.rename(self.socket, door)
        self.end_server()
        door.unlink(missing_ok=True)

    def end_server(self, number: int = signal.SIGTERM) -> None:
        """Signal the server and wait until it is gone."""
        if self.server is None:
            return
        self.server.send_signal(number)
        try:
            self.server.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            note(f"server {self.server.pid} did not leave in {STOP_TIMEOUT:g} s, killing it")
            self.server.kill()
            self.server.wait()
        note(f"server ended with code {self.server.returncode}")

    # -- plumbing

    def _asked_to_stop(self, number: int, frame: object) -> None:
        self.stop_signal = number

    def _sleep(self, seconds: float) -> None:
        """Until the time is over or a signal comes."""
        if select.select([self.wakeup], [], [], seconds)[0]:
            os.read(self.wakeup, 512)

    def _leave_output(self) -> None:
        """Let go of the caller's pipe."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)


def report(**message: str) -> None:
    """Tell the process that started this one. It may be gone by now."""
    try:
        os.write(1, json.dumps(message).encode() + b"\n")
    except OSError as error:
        note(f"nobody reads {message}: {error}")


def _acquire(lock: FileLock) -> bool:
    deadline = time.monotonic() + 1.0
    while not lock.try_acquire():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _die_with_parent() -> Callable[[], None] | None:
    """What the server does between fork and exec, so that it never outlives its watchdog."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def tie() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)  # the watchdog died in between: no signal will come

    return tie


def main(arguments: list[str]) -> None:
    """Leave the caller's process tree and be the watchdog."""
    parser = argparse.ArgumentParser(prog="watchdog")
    for name in ("directory", "socket", "binary", "version"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--linger", type=float, required=True)
    parser.add_argument("--memory-only", action="store_true")
    options = parser.parse_args(arguments)
    if os.fork():
        os._exit(0)  # the caller reaps this one at once and never has to think of a child again
    os.umask(0o077)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    state = State(
        socket=options.socket,
        watchdog_pid=os.getpid(),
        server_pid=None,
        namespace=pid_namespace(),
        binary=options.binary,
        version=options.version,
        persistent=not options.memory_only,
        linger=options.linger,
        started_at=time.time(),
    )
    watchdog = Watchdog(Place(Path(options.directory)), state)
    try:
        watchdog.run()
    except Exception as error:
        note(f"crashed: {error!r}")
        report(event="failed", reason=f"The watchdog of the embedded server crashed: {error!r}.")
        watchdog.end_server()  # it must not stay without one
        raise


if __name__ == "__main__":
    main(sys.argv[1:])
