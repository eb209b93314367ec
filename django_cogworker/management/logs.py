"""The log of a worker: where it goes, how its lines look, and which job each belongs to."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from django.core.management.base import CommandError, OutputWrapper

from django_cogworker.logs import JobFilter, JsonFormatter

FORMATS = ("text", "json")
#: What `--verbosity` stands for.
LEVELS = {0: logging.CRITICAL, 1: logging.INFO, 2: logging.DEBUG, 3: logging.DEBUG}


def set_up_logging(
    verbosity: int, logfile: Path | None, log_format: str, terminal: OutputWrapper | TextIO
) -> None:
    """To the terminal where the project configured nothing for us; to a file where that was asked.

    As JSON, what the project lets go to the terminal takes that form too, whichever logger it comes from.
    """
    logger = logging.getLogger("django_cogworker")
    as_json = log_format == "json"
    formatter = JsonFormatter() if as_json else _line_format()
    handler: logging.Handler | None = None
    if logfile is not None:
        try:
            handler = logging.FileHandler(logfile, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"--logfile {logfile} cannot be written: {error}.") from error
    elif not logger.hasHandlers():
        handler = logging.StreamHandler(terminal)
    if as_json:
        for each in _of_the_terminal():
            each.setFormatter(formatter)
    if handler is not None:
        handler.setFormatter(formatter)
        # As JSON other loggers speak there too, for lines of another form would lie between ours.
        target = logging.getLogger() if as_json and logfile is None else logger
        if target is not logger:
            _leave_the_terminal_to_the_root()
        target.addHandler(handler)
    if handler is not None or verbosity != 1:
        logger.setLevel(LEVELS[verbosity])
    for each in _handlers():
        if not any(isinstance(found, JobFilter) for found in each.filters):
            each.addFilter(JobFilter())


def _handlers() -> Iterator[logging.Handler]:
    """Those of all loggers that there are, and the one for loggers that have none."""
    root = logging.getLogger()
    for logger in [root, *root.manager.loggerDict.values()]:
        if isinstance(logger, logging.Logger):
            yield from logger.handlers
    if logging.lastResort is not None:
        yield logging.lastResort


def _leave_the_terminal_to_the_root() -> None:
    """Loggers whose records come to the root anyway write them there, once: Django's own has a handler for the console
    beside that.
    """
    terminal = list(_of_the_terminal())
    for logger in list(logging.getLogger().manager.loggerDict.values()):
        if isinstance(logger, logging.Logger) and _reaches_the_root(logger):
            for each in [each for each in logger.handlers if each in terminal]:
                logger.removeHandler(each)


def _reaches_the_root(logger: logging.Logger) -> bool:
    while logger.propagate and logger.parent is not None:
        logger = logger.parent
    return logger.parent is None


def _of_the_terminal() -> Iterator[logging.Handler]:
    ours = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    for each in _handlers():
        if isinstance(each, logging.StreamHandler) and any(each.stream is one for one in ours):
            yield each


def _line_format() -> logging.Formatter:
    formatter = logging.Formatter(
        "%(asctime)s pid=%(process)d %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ"
    )
    formatter.converter = time.gmtime
    return formatter
