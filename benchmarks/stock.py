"""Fills a Redis with what a large project has there after a bad day: for the benchmark of the admin's pages."""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

PREFIX = "cogworker:"
CLASS = "benchmarks.project.jobs.Stamp"
QUEUES, WORKERS, CLASSES, GROUPS = 100, 200, 100, 500
HELD = 10
#: The queue that most jobs are on.
DEEP = "deep"
WORKER = "host0:1000:000000000000"

_LINE = '  File "/srv/shop/views/orders.py", line 214, in fetch\n    return self.client.get(url)\n'
_TRACEBACK = base64.b64encode(
    zlib.compress(f"Traceback (most recent call last):\n{_LINE * 20}TimeoutError".encode())
).decode()


def fill(client: Any, jobs: int, runs: int, say: Callable[[str], None]) -> None:
    """So many dead, queued, scheduled jobs; a tenth as many retries."""
    now = time.time()
    for name, number, begin in (
        ("dead", jobs, now - 86_400 * 30),
        ("schedule", jobs, now + 60),
        ("retry", jobs // 10, now + 60),
    ):
        say(f"{number:,} in {name}")
        _fill_set(client, name, number, begin)
    say(f"{jobs:,} on {QUEUES} queues")
    _fill_queues(client, jobs, now)
    say(f"{WORKERS} workers, {runs:,} runs, {CLASSES} classes, {GROUPS} groups of errors")
    _fill_workers(client, now)
    _fill_history(client, runs, now)
    _fill_classes(client, now)
    _fill_errors(client, now)
    _fill_periodic(client, now)


def _job(jid: str, number: int, queue: str, now: float, more: str = "") -> str:
    return (
        f'{{"class":"{CLASS}","jid":"{jid}","queue":"{queue}","args":[{number},'
        f'"customer-{number % 5000}@example.com",{{"total":"{number}.50","lines":[1,2,3]}}],"v":1,'
        f'"created_at":{now:.3f},"retry":25{more}}}'
    )


def _failed(number: int, now: float) -> str:
    group = f"{number % GROUPS:012x}"
    return (
        f',"tags":["nightly"],"retry_count":3,"failed_at":{now - 60:.3f},"error_class":"TimeoutError",'
        f'"error_message":"shop-{number % 7} did not answer within 30 s","error_group":"{group}"'
    )


def _batches(items: Iterator[Any], size: int = 5_000) -> Iterator[list[Any]]:
    while batch := list(islice(items, size)):
        yield batch


def _fill_set(client: Any, name: str, number: int, begin: float) -> None:
    failed = name != "schedule"

    def made() -> Iterator[tuple[str, float]]:
        for each in range(number):
            more = _failed(each, begin) if failed else ""
            queue = f"queue-{each % QUEUES}"
            yield _job(f"{name[0]}{each:023x}"[:24], each, queue, begin, more), begin + each / 10

    for batch in _batches(made()):
        client.zadd(f"{PREFIX}{name}", dict(batch))


def _fill_queues(client: Any, jobs: int, now: float) -> None:
    names = [DEEP, *(f"queue-{each}" for each in range(QUEUES - 1))]
    client.sadd(f"{PREFIX}queues", *names)
    each_has = jobs // 2 // (QUEUES - 1)
    for name in names:
        many = jobs - each_has * (QUEUES - 1) if name == DEEP else each_has
        more = f',"enqueued_at":{now - 60:.3f}'
        made = (_job(f"{name[-2:]}{each:022x}"[:24], each, name, now, more) for each in range(many))
        for batch in _batches(made):
            client.lpush(f"{PREFIX}queue:{name}", *batch)


def _fill_workers(client: Any, now: float) -> None:
    pipe = client.pipeline(transaction=False)
    for number in range(WORKERS):
        identity = f"host{number // 10}:{1000 + number}:{number:012x}"
        queues = [f"queue-{(number + each) % (QUEUES - 1)}" for each in range(20)]
        info = {"hostname": f"host{number // 10}", "pid": 1000 + number, "concurrency": HELD}
        info |= {"queues": [DEEP, *queues], "started_at": now - 3600, "version": "1.0"}
        info |= {
            "python": "3.13.1",
            "gil": True,
            "rss_kb": 90_000,
            "django": "6.1",
            "redis_py": "8",
        }
        pipe.sadd(f"{PREFIX}processes", identity)
        beat = {"info": json.dumps(info), "busy": HELD, "quiet": "false", "beat": now}
        pipe.hset(f"{PREFIX}process:{identity}", mapping=beat)
        for ticket in range(HELD):
            job = _job(f"a{number:011x}{ticket:012x}", ticket, DEEP, now)
            taken = f"{int(now * 1000) - 5_000} {DEEP}\n{job}"
            pipe.hset(f"{PREFIX}workers:{identity}", str(ticket + 1), taken)
        pipe.hset(f"{PREFIX}holders", identity, HELD + 1)
    pipe.execute()


def _fill_history(client: Any, runs: int, now: float) -> None:
    pipe = client.pipeline(transaction=False)
    for number in range(runs):
        kind = "failed" if number % 10 == 0 else "success"
        error = {"outcome": "retrying", "error_class": "TimeoutError", "traceback": _TRACEBACK}
        error |= {"error_message": "the shop did not answer within 30 s"}
        record = {"jid": f"h{number:023x}", "class": f"{CLASS}{number % CLASSES}", "queue": DEEP}
        record |= {"attempt": 1, "seconds": number % 97 / 10, "wait": number % 13 / 10}
        record |= error if kind == "failed" else {}
        record["args"] = [number, f"customer-{number % 5000}@example.com"]
        text = json.dumps(record, separators=(",", ":"))
        pipe.zadd(f"{PREFIX}history:{kind}", {text: now - number})
        if number % 1_000 == 999:
            pipe.execute()
    for day in range(400):
        date = time.strftime("%Y-%m-%d", time.gmtime(now - 86_400 * day))
        pipe.hset(f"{PREFIX}history:daily:{date}", mapping={"success": 90_000, "failed": 1_000})
    for hour in range(int(now // 3600) - 24, int(now // 3600) + 1):
        pipe.hset(f"{PREFIX}throughput:{hour}", mapping={"processed": 4_000, "failed": 50})
    pipe.execute()


def _fill_classes(client: Any, now: float) -> None:
    """Each ran in every hour, in 30 buckets of run time and 30 of waiting time."""
    buckets: dict[str, int] = {"success": 900, "failed": 30}
    for number in range(30):
        buckets[f"r{20 + number}"] = buckets[f"w{10 + number}"] = 31
    pipe = client.pipeline(transaction=False)
    for number in range(CLASSES):
        name = f"{CLASS}{number}"
        pipe.zadd(f"{PREFIX}history:classes", {name: now})
        for hour in range(int(now // 3600) - 24, int(now // 3600) + 1):
            pipe.hset(f"{PREFIX}history:times:{name}:{hour}", mapping=buckets)
    pipe.execute()


def _fill_errors(client: Any, now: float) -> None:
    hour = int(now // 3600)
    hours = " ".join(f"{each}:5" for each in range(hour - 23, hour + 1))
    pipe = client.pipeline(transaction=False)
    for number in range(GROUPS):
        told = {"class": CLASS, "error": "TimeoutError", "where": f"shop.views.fetch{number}"}
        told |= {
            "line": "shop/views/orders.py:214",
            "message": "the shop did not answer",
            "jid": "x",
        }
        row = f"{now - number:.3f} {number + 120} {now - 86_400:.3f} {hours}\n{json.dumps(told)}"
        pipe.hset(f"{PREFIX}errors:groups", f"{number:012x}", row)
    pipe.execute()


def _fill_periodic(client: Any, now: float) -> None:
    from django_cogworker.features.periodic.entries import all_entries
    from django_cogworker.features.periodic.records import Records

    Records().publish(all_entries())
    pipe = client.pipeline(transaction=False)
    for entry in all_entries():
        for slot in range(50):
            line = {"slot": int(now) - 60 * slot, "at": now - 60 * slot, "jid": f"p{slot}"}
            pipe.lpush(f"{PREFIX}periodic:ledger:{entry.name}", json.dumps(line))
            pipe.lpush(f"{PREFIX}periodic:outcomes:{entry.name}", f"{line['slot']} p{slot} success")
    pipe.execute()
