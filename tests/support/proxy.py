"""A proxy in front of Redis that breaks things in the ways that networks do.

    with RedisProxy(server.url) as proxy:
        lost = proxy.lose_reply(b"EVALSHA")          # Redis does it, the client never hears of it
        ...
        assert lost.wait()

It cuts both streams into commands and replies, so a rule can aim at one command: the `nth` that
holds the bytes `match`, and the `times - 1` after it that do. A rule says what happens to it:

* `delay_reply`: the reply comes late;
* `lose_reply`: Redis ran the command, the reply is lost, then the connection is cut (or hangs);
* `lose_request`: Redis never sees the command, then the connection is cut (or hangs).

For everything at once: `cut()`, `down()` / `up()` (no connections at all), `freeze()` / `thaw()`
(half-open: connections stand, nothing passes).
"""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self
from urllib.parse import urlsplit

from tests.support.resp import split_messages

Match = bytes | Callable[[bytes], bool]
Action = Literal["delay", "lose_reply", "lose_request"]
Then = Literal["cut", "hang"]

# After one of these a connection gets messages that answer no command.
_PUSHED = (b"SUBSCRIBE", b"PSUBSCRIBE", b"SSUBSCRIBE", b"MONITOR")


@dataclass(eq=False)
class Rule:
    """What happens to which commands; `hits` counts those it happened to."""

    action: Action
    match: Match
    nth: int = 1
    times: int | None = 1
    seconds: float = 0.0
    then: Then = "cut"
    seen: int = 0
    hits: int = 0
    _hit: threading.Event = field(default_factory=threading.Event)

    def takes(self, command: bytes) -> bool:
        """Whether this command is one of ours. Called once for each command, under a lock."""
        if not (self.match(command) if callable(self.match) else self.match in command):
            return False
        self.seen += 1
        late = self.times is not None and self.seen >= self.nth + self.times
        return self.seen >= self.nth and not late

    def count(self) -> None:
        self.hits += 1
        self._hit.set()

    def wait(self, timeout: float = 10.0) -> bool:
        """Wait until the rule has struck for the first time."""
        return self._hit.wait(timeout)


class RedisProxy:
    """Listens on a port of its own and forwards to the server behind `target_url`."""

    def __init__(self, target_url: str) -> None:
        self._target = urlsplit(target_url)
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self._links: set[_Link] = set()
        self._open = threading.Event()  # cleared while frozen
        self._open.set()
        self._refusing = False
        self._closed = False
        self.accepted = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept, name="proxy-accept", daemon=True)
        self._acceptor.start()

    @property
    def url(self) -> str:
        """The address to give to the client, same database as the target's."""
        db = self._target.path.strip("/") if self._target.scheme == "redis" else ""
        return f"redis://127.0.0.1:{self.port}/{db or 0}"

    # -- one command

    def delay_reply(
        self, seconds: float, match: Match = b"", *, nth: int = 1, times: int | None = None
    ) -> Rule:
        """Hold replies back for `seconds`; by default all of them."""
        return self._add(Rule("delay", match, nth, times, seconds))

    def lose_reply(
        self, match: Match = b"", *, nth: int = 1, times: int | None = 1, then: Then = "cut"
    ) -> Rule:
        """Let Redis run the command but lose its reply."""
        return self._add(Rule("lose_reply", match, nth, times, then=then))

    def lose_request(
        self, match: Match = b"", *, nth: int = 1, times: int | None = 1, then: Then = "cut"
    ) -> Rule:
        """Lose the command before Redis sees it."""
        return self._add(Rule("lose_request", match, nth, times, then=then))

    def remove(self, rule: Rule) -> None:
        """Take a rule back."""
        with self._lock:
            self._rules.remove(rule)

    def clear(self) -> None:
        """Take all rules back."""
        with self._lock:
            self._rules.clear()

    # -- everything

    def cut(self) -> int:
        """Close all connections, and say how many there were."""
        with self._lock:
            links = list(self._links)
        for link in links:
            link.close()
        return len(links)

    def down(self) -> None:
        """Close all connections, and each new one at once."""
        self._refusing = True
        self.cut()

    def up(self) -> None:
        """Serve again."""
        self._refusing = False

    def freeze(self) -> None:
        """Let nothing pass in either direction; connections stay, and new ones are accepted."""
        self._open.clear()

    def thaw(self) -> None:
        """Let everything pass again, also what was held back."""
        self._open.set()

    def close(self) -> None:
        self._closed = True
        self._open.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join(5)
        with self._lock:
            links = list(self._links)
        for link in links:
            link.close()
        for link in links:
            link.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- inside

    def _add(self, rule: Rule) -> Rule:
        with self._lock:
            self._rules.append(rule)
        return rule

    def rule_for(self, command: bytes) -> Rule | None:
        """The first rule that wants this command. Each rule counts the commands that it sees."""
        with self._lock:
            wanted = [rule for rule in self._rules if rule.takes(command)]
        return wanted[0] if wanted else None

    def wait_open(self) -> None:
        self._open.wait()

    def forget(self, link: _Link) -> None:
        with self._lock:
            self._links.discard(link)

    def _connect(self) -> socket.socket:
        if self._target.scheme == "unix":
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(self._target.path)
            return upstream
        host, port = self._target.hostname or "127.0.0.1", self._target.port or 6379
        return socket.create_connection((host, port), timeout=None)

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed: that is how this thread ends
                return
            self.accepted += 1
            if self._refusing:
                client.close()
                continue
            try:
                upstream = self._connect()
            except OSError:  # the server is away: what the client sees then is a closed connection
                client.close()
                continue
            link = _Link(self, client, upstream)
            with self._lock:
                self._links.add(link)
            link.start()


def _name(command: bytes) -> bytes:
    """`*2\\r\\n$9\\r\\nSUBSCRIBE\\r\\n…` → `SUBSCRIBE`."""
    words = command.split(b"\r\n", 3)
    return words[2].upper() if len(words) > 2 else b""


class _Link:
    """One client's connection: a thread for its commands, a thread for the replies."""

    def __init__(self, proxy: RedisProxy, client: socket.socket, upstream: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._upstream = upstream
        self._fates: deque[Rule | None] = deque()  # one for each command that awaits its reply
        self._raw = False  # replies no longer answer commands one by one
        self._deaf = False  # commands are thrown away
        self._mute = False  # replies are thrown away
        self._lock = threading.Lock()
        self._running = 2
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(pump,), name="proxy", daemon=True)
            for pump in (self._pump_commands, self._pump_replies)
        ]
        for sock in (client, upstream):
            if sock.family == socket.AF_INET:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(5)

    def close(self) -> None:
        self._ended.set()
        for sock in (self._client, self._upstream):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._proxy.forget(self)

    def _run(self, pump: Callable[[], None]) -> None:
        try:
            pump()
        except OSError:  # one side is gone; the other side must learn of it
            pass
        finally:
            self.close()
            if self._is_last():
                self._client.close()
                self._upstream.close()

    def _is_last(self) -> bool:
        """Whether the other thread is done as well, so that the descriptors can go."""
        with self._lock:
            self._running -= 1
            return self._running == 0

    def _pump_commands(self) -> None:
        buffer = bytearray()
        while data := self._client.recv(65536):
            if self._deaf:
                continue
            buffer += data
            for command in split_messages(buffer):
                rule = self._proxy.rule_for(command)
                self._proxy.wait_open()
                if rule and rule.action == "lose_request":
                    rule.count()
                    if rule.then == "cut":
                        return
                    self._deaf = True
                    break
                if _name(command) in _PUSHED:
                    self._raw = True
                self._fates.append(rule)
                self._upstream.sendall(command)

    def _pump_replies(self) -> None:
        buffer = bytearray()
        while data := self._upstream.recv(65536):
            if self._raw:
                self._proxy.wait_open()
                self._client.sendall(bytes(buffer) + data)
                buffer.clear()
                continue
            buffer += data
            for reply in split_messages(buffer):
                # A push message of RESP3 answers nothing.
                rule = None if reply.startswith(b">") else self._fates.popleft()
                self._proxy.wait_open()
                if rule and rule.action == "delay":
                    rule.count()
                    self._ended.wait(rule.seconds)
                elif rule and rule.action == "lose_reply":
                    rule.count()
                    if rule.then == "cut":
                        return
                    self._mute = True
                if not self._mute:
                    self._client.sendall(reply)
