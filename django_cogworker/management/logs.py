"""The log of a worker: lines on the terminal where the project configured nothing, or in a file."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TextIO

from django.core.management.base import CommandError, OutputWrapper

#: What `--verbosity` stands for.
LEVELS = {0: logging.CRITICAL, 1: logging.INFO, 2: logging.DEBUG, 3: logging.DEBUG}


def set_up_logging(verbosity: int, logfile: Path | None, terminal: OutputWrapper | TextIO) -> None:
    """To the terminal where the project configured nothing for us; to a file where that was asked."""
    logger = logging.getLogger("django_cogworker")
    handlers: list[logging.Handler] = []
    if logfile is not None:
        try:
            handlers.append(logging.FileHandler(logfile, encoding="utf-8"))
        except OSError as error:
            raise CommandError(f"--logfile {logfile} cannot be written: {error}.") from error
    elif not logger.hasHandlers():
        handlers.append(logging.StreamHandler(terminal))
    for handler in handlers:
        handler.setFormatter(_line_format())
        logger.addHandler(handler)
    if handlers or verbosity != 1:
        logger.setLevel(LEVELS[verbosity])


def _line_format() -> logging.Formatter:
    formatter = logging.Formatter(
        "%(asctime)s pid=%(process)d %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ"
    )
    formatter.converter = time.gmtime
    return formatter
