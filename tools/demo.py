"""`run.py demo`: the test project with its web server, a worker and an embedded Valkey.

Everything it writes lies in `testproject/var`. The children live in sessions of their own, so a
Ctrl-C in the terminal reaches only this process, which then stops them in the order that loses
nothing: worker, web server, embedded server.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from tools import environment
from tools.environment import ROOT

PROJECT = ROOT / "testproject"
VAR = Path(os.environ.get("SHOP_VAR", PROJECT / "var"))  # as in the settings of the project
LOGIN = ("admin", "cogworker")  # a demo on the loopback interface: nothing to protect
REQUIREMENTS = ["-e", ".[embedded,tasks]", "pillow>=11"]

START_TIMEOUT = 60.0
JOBS_TIMEOUT = 120.0
STOP_TIMEOUT = 40.0  # longer than a worker gives its jobs


class DemoFailed(Exception):
    """Something did not start or did not do what it should; the text says what."""


def run(*, check: bool, port: int | None) -> int:
    """Start all, enqueue the demo jobs, report; stay until Ctrl-C unless `check`."""
    python = environment.prepare("demo", REQUIREMENTS)
    # Nobody looks at the page of a mere check, so leave port 8000 to others.
    demo = Demo(python, usable_port(port, [0] if check else [8000, 0]))
    previous = [(number, signal.signal(number, _interrupt)) for number in _stop_signals()]
    try:
        demo.start()
        good = demo.try_jobs()
        if not check:
            demo.stay()
        return 0 if good or not check else 1
    except DemoFailed as error:
        print(f"\nFAILED: {error}")
        return 1
    except KeyboardInterrupt:
        print()
        return 130 if check else 0
    finally:
        for number, _ in previous:  # asked again while we stop: hurry
            signal.signal(number, demo.kill)
        demo.stop()
        for number, handler in previous:
            signal.signal(number, handler)


class Demo:
    """The processes of the demo."""

    def __init__(self, python: Path, port: int) -> None:
        self.python = python
        self.port = port
        self._server_started = False
        self._worker: subprocess.Popen[bytes] | None = None
        self._web: subprocess.Popen[bytes] | None = None
        self._more: list[subprocess.Popen[bytes]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    # -- the story

    def start(self) -> None:
        """Make the database and the data, and start the three servers."""
        VAR.mkdir(parents=True, exist_ok=True)
        print("Preparing the shop: database, products, pictures …", flush=True)
        self._manage("migrate", "--verbosity", "0")
        self._manage("prepare_demo", "--username", LOGIN[0], "--password", LOGIN[1])
        print("Starting the embedded server, the web server and a worker …", flush=True)
        self._server_started = True
        self._manage("demo_server", "start")
        self._worker = self._spawn("worker", "runworker", "--noreload", *_WORKER_OPTIONS)
        self._start_web()

    def try_jobs(self) -> bool:
        """Enqueue the demo jobs, wait until they have run, and print what ran."""
        self._manage("enqueue_demo")
        good = self._call("demo_report", "--wait", str(JOBS_TIMEOUT)) == 0
        self._check_alive()
        if not good:
            print(f"\nNot all went well. The end of {_log_path('worker')}:")
            print(_tail(_log_path("worker")))
        return good

    def pose(self) -> None:
        """Another worker, and what pictures of the admin should show."""
        self._more.append(self._spawn("second", "runworker", "-q", "critical", "-q", "mail"))
        self._manage("pose_demo")

    def stay(self) -> None:
        """Say where everything is, and wait for Ctrl-C."""
        print(f"\n  shop:   {self.address}")
        print(f"  admin:  {self.address}admin/   {LOGIN[0]} / {LOGIN[1]}")
        print(f"  logs:   {VAR / 'log'}")
        print("\nCtrl-C stops all of it.", flush=True)
        while True:
            self._check_alive()
            time.sleep(0.5)

    def stop(self) -> None:
        """Stop what runs: the worker first, the embedded server last."""
        if self._worker or self._web:
            print("Stopping …", flush=True)
        for process in (*self._more, self._worker):
            _end(process)
        _end(self._web)
        self._worker = self._web = None
        if self._server_started and self._call("demo_server", "stop"):
            print("The embedded server could not be stopped; it ends by itself when unused.")

    def kill(self, number: int, frame: FrameType | None) -> None:
        """A signal handler: do not wait for jobs any longer. They are not lost, only late."""
        self.kill_now()

    def kill_now(self) -> None:
        for process in (*self._more, self._worker, self._web):
            if process:
                _kill_group(process)

    # -- the parts

    def _command(self, *args: str) -> list[str]:
        return [str(self.python), "manage.py", *args]

    def _call(self, *args: str) -> int:
        """Run a command of the test project to its end and return its exit status."""
        env = {**_environ(), "SHOP_LOG_LEVEL": "WARNING"}
        command = self._command(*args)
        return subprocess.run(command, cwd=PROJECT, env=env, start_new_session=True).returncode

    def _manage(self, *args: str) -> None:
        if self._call(*args):
            raise DemoFailed(f"`manage.py {' '.join(args[:2])}` failed, see above")

    def _spawn(self, name: str, *args: str) -> subprocess.Popen[bytes]:
        path = _log_path(name)
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as log:
            return subprocess.Popen(
                self._command(*args),
                cwd=PROJECT,
                env=_environ(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent(),
            )

    def _start_web(self) -> None:
        """Start the web server and wait for its answer; move if somebody took the port."""
        deadline = time.monotonic() + START_TIMEOUT
        self._web = self._spawn("web", "runserver", "--noreload", f"127.0.0.1:{self.port}")
        while time.monotonic() < deadline:
            if self._web.poll() is not None and "already in use" in _tail(_log_path("web")):
                self.port = usable_port(None, [0])
                self._web = self._spawn("web", "runserver", "--noreload", f"127.0.0.1:{self.port}")
            self._check_alive()
            if self._is_our_server():
                return
            time.sleep(0.05)
        raise DemoFailed(f"the web server did not answer within {START_TIMEOUT:.0f} s")

    def _is_our_server(self) -> bool:
        """Whether the server at our address is the one that we started, and no other demo's."""
        try:
            with urllib.request.urlopen(f"{self.address}instance/", timeout=10) as answer:
                return bool(answer.read().decode() == str(os.getpid()))
        except OSError:  # it does not listen yet, or is no shop at all
            return False

    def _check_alive(self) -> None:
        for name, process in (("worker", self._worker), ("web", self._web)):
            if process and process.poll() is not None:
                path = _log_path(name)
                raise DemoFailed(
                    f"the {name} ended with status {process.returncode}. "
                    f"The end of {path}:\n{_tail(path)}"
                )


_WORKER_OPTIONS = ("-q", "critical,3", "-q", "default,2", "-q", "low", "-q", "mail")


def _environ() -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1", "SHOP_INSTANCE": str(os.getpid())}


def _log_path(name: str) -> Path:
    return VAR / "log" / f"{name}.log"


def _tail(path: Path, lines: int = 30) -> str:
    text = path.read_text(errors="replace") if path.exists() else "(nothing)"
    return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])


def usable_port(wish: int | None, otherwise: list[int]) -> int:
    """The port asked for, else the first free one of `otherwise`; 0 stands for any."""
    for port in [wish] if wish else otherwise:
        with socket.socket() as sock:
            if os.name != "nt":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                sock.bind(("127.0.0.1", port))
                return int(sock.getsockname()[1])
    raise environment.SetupFailed(f"Port {wish} is taken.")


def _end(process: subprocess.Popen[bytes] | None) -> None:
    """Ask a child to stop; kill its group if it does not."""
    if process is None:
        return
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            print(f"Process {process.pid} does not stop within {STOP_TIMEOUT:.0f} s: killed.")
    _kill_group(process)
    process.wait()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the child and what it forked; it leads a group of its own."""
    if os.name == "nt":
        process.kill()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _stop_signals() -> list[signal.Signals]:
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end_with_parent() -> Callable[[], None] | None:
    """On Linux: let the kernel end the child when this process dies without a chance to do it."""
    if sys.platform != "linux":
        return None
    prctl, parent_death_signal = ctypes.CDLL(None).prctl, 1
    return lambda: prctl(parent_death_signal, signal.SIGTERM)
