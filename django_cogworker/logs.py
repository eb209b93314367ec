"""Log records that say which job they belong to, and a formatter that writes them as JSON.

`JobFilter` gives every record that passes a handler `jid`, `job_class`, `queue` and `attempt`: of the job that runs
in this thread or task, whoever logs; empty outside. `runworker` puts it on all handlers that there are. Where a format
names these fields in another process too, it belongs into `LOGGING`:

    "filters": {"job": {"()": "django_cogworker.logs.JobFilter"}}

It is a filter of handlers and no factory of records: a factory that sets `queue` would make every
`logger.info(…, extra={"queue": …})` of the project an error.

`JsonFormatter` writes one object a line, whatever is in a record.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
from typing import Any

from django_cogworker.jobs.context import job_here

#: What a record says of its job.
FIELDS = ("jid", "job_class", "queue", "attempt")

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def job_fields() -> dict[str, Any]:
    """The fields of the job that runs here; nothing outside a job."""
    job = job_here()
    if job is None:
        return {}
    payload = job.payload
    return {
        "jid": job.jid,
        "job_class": payload.get("class"),
        "queue": payload.get("queue"),
        "attempt": job.attempt,
    }


class JobFilter(logging.Filter):
    """Lets every record pass, and writes into it which job it belongs to. What it has already is left alone."""

    def filter(self, record: logging.LogRecord) -> bool:
        found = job_fields()
        for name in FIELDS:
            record.__dict__.setdefault(name, found.get(name, ""))
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object a line, in ASCII: `time` (UTC), `level`, `logger`, `message`, `pid`, `thread`, the fields of the
    job, whatever came in `extra`, `exception` and `stack`.
    """

    def __init__(self) -> None:
        super().__init__()

    def format(self, record: logging.LogRecord) -> str:
        time = dt.datetime.fromtimestamp(record.created, dt.UTC)
        entry: dict[str, Any] = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
            "pid": record.process,
            "thread": record.threadName,
        }
        given = {name: value for name, value in vars(record).items() if name not in _OWN}
        job = job_fields() | {
            name: given.pop(name) for name in FIELDS if given.get(name) not in ("", None)
        }
        entry |= {name: _plain(value) for name, value in job.items()}
        for name, value in given.items():
            if name not in FIELDS:
                entry.setdefault(name, _plain(value))
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        elif record.exc_text:
            entry["exception"] = record.exc_text
        if record.stack_info:
            entry["stack"] = self.formatStack(record.stack_info)
        return _encode(entry)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # the arguments do not fit the text, or cannot be written
        return f"{_plain(record.msg)} {_plain(record.args)}"


def _plain(value: Any) -> Any:
    """What JSON can hold."""
    if type(value) in (str, int, bool, type(None)):
        return value
    try:
        _encode(value)
    except (TypeError, ValueError, RecursionError):
        try:
            return str(value)
        except Exception:  # a log line is no reason to fail
            return f"<{type(value).__qualname__}>"
    return value
