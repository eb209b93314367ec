"""How fast the admin's pages answer where there is much: a million dead jobs, a million queued, a million scheduled.

    python -m benchmarks.admin [jobs] [runs]

Fills a Redis of its own, then asks for each page in this process: once to warm up, then five times. Prints the median
and the longest answer, the mean processor time of this process (which a busy machine changes less), round trips to
Redis, and by how much the process grew over 200 more views. Exits 1 where the longest took 300 ms or more.
"""

from __future__ import annotations

import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import stock
from tests.support.redis_server import RedisServer
from tests.support.round_trips import counted

LIMIT = 0.3
TIMES = 5
VIEWS = 200
#: Nowhere near the beginning of anything: its page may say, with 404, that it was not found in time.
LOOKED_FOR = f"d{4321:023x}"


def main(jobs: int = 1_000_000, runs: int = 10_000) -> int:
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.project.web"
    with RedisServer() as server:
        os.environ["COGWORKER_REDIS_URL"] = server.url
        import django

        django.setup()
        begun = time.perf_counter()
        client = server.client(socket_timeout=60)
        stock.fill(client, jobs, runs, say)
        used = client.info("memory")["used_memory_human"]
        say(f"filled in {time.perf_counter() - begun:.0f} s, Redis has {used}")
        version = client.info("server")["redis_version"]
        say(f"Redis {version}, Python {platform.python_version()}, Django {django.__version__}")
        return measure(jobs)


def say(text: str) -> None:
    print(text, flush=True)


def measure(jobs: int) -> int:
    browser = log_in()
    slow, addresses = [], dict(pages(jobs))
    print(f"\n| {'page':46} | median ms | longest ms | processor ms | round trips |")
    print(f"| {'-' * 46} | ---: | ---: | ---: | ---: |")
    for name, address in addresses.items():
        view(browser, address)
        begun = time.process_time()
        took = [view(browser, address) for _ in range(TIMES)]
        busy = (time.process_time() - begun) / TIMES * 1000
        with counted() as trips:
            view(browser, address)
        middle, most = statistics.median(took) * 1000, max(took) * 1000
        say(f"| {name:46} | {middle:9.0f} | {most:10.0f} | {busy:12.0f} | {trips.number:11} |")
        if max(took) >= LIMIT:
            slow.append(name)
    print()
    before = resident()
    for each in range(VIEWS):
        view(browser, list(addresses.values())[each % len(addresses)])
    say(f"memory: {before:.1f} MB before, {resident():.1f} MB after {VIEWS} more views")
    for each in slow:
        print(f"too slow: {each}")
    return int(bool(slow))


def log_in() -> Any:
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    call_command("migrate", verbosity=0)
    browser = Client()
    browser.force_login(User.objects.create_superuser("root"))
    return browser


def view(browser: Any, address: str) -> float:
    begun = time.perf_counter()
    answer = browser.get(address)
    took = time.perf_counter() - begun
    if answer.status_code not in (200, 404 if LOOKED_FOR in address else 200):
        raise SystemExit(f"{address} answers {answer.status_code}")
    return took


def resident() -> float:
    """Megabytes of this process in memory now; where that is not told, the most it ever had."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 2**20
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def pages(jobs: int) -> Iterator[tuple[str, str]]:
    """Names and addresses."""
    root = "/admin/django_cogworker"
    for name in ("overview", "job", "queue", "scheduled", "retry", "dead", "periodic", "worker"):
        yield name, f"{root}/{name}/"
        yield f"{name}, refreshed part", f"{root}/{name}/?_live=1"
    for name in ("history", "error", "jobclass"):
        yield name, f"{root}/{name}/"
        yield f"{name}, refreshed part", f"{root}/{name}/?_live=1"
    now = time.time()
    half, end = jobs / 2 / 10, jobs / 10
    dead, due = now - 86_400 * 30, now + 60
    yield "overview, half a year", f"{root}/overview/?period=182"
    for name, begin in (("scheduled", due), ("dead", dead)):
        yield f"{name}, in the middle", f"{root}/{name}/?cursor=0_0_{begin + half}"
        near = 5 if name == "dead" else end - 5
        yield f"{name}, near the end", f"{root}/{name}/?cursor=0_0_{begin + near}"
    deep = f"{root}/queue/{stock.DEEP}/change/"
    yield "queue, its jobs", deep
    yield "queue, its jobs, refreshed part", f"{deep}?_live=1"
    yield "queue, its jobs, in the middle", f"{deep}?cursor=1_{jobs // 4}"
    yield "queue, its jobs, near the end", f"{deep}?cursor=1_{jobs // 2 - 30}"
    yield "queue, its jobs, search without a match", f"{deep}?q=nothing"
    for name in ("scheduled", "dead"):
        yield f"{name}, search, many match", f"{root}/{name}/?q=customer"
        yield f"{name}, search without a match", f"{root}/{name}/?q=nothing-like-it"
        yield f"{name}, every filter", f"{root}/{name}/?class=Stamp&args=customer-77&queue=queue-7"
    yield "dead, of one group of errors", f"{root}/dead/?error_group={77:012x}"
    for state in ("worker", "queue", "schedule", "retry", "dead"):
        yield f"job, state {state}", f"{root}/job/?state={state}"
    yield "job, search without a match", f"{root}/job/?anything=nothing-like-it"
    yield "job, search, many match", f"{root}/job/?anything=customer"
    yield "job, one that runs", f"{root}/job/a{0:011x}{0:012x}/change/?seen=worker/{stock.WORKER}"
    yield "job, one that is dead, looked for", f"{root}/job/{LOOKED_FOR}/change/"
    yield "worker, one", f"{root}/worker/{stock.WORKER.replace(':', '_3A')}/change/"
    yield "worker, last page", f"{root}/worker/?p=4"
    yield "queue, second page", f"{root}/queue/?p=2"
    yield "queue, search", f"{root}/queue/?q=7"
    yield "periodic, second page", f"{root}/periodic/?p=2"
    yield "periodic, search", f"{root}/periodic/?q=entry-7"
    yield "periodic, one", f"{root}/periodic/entry-7/change/"
    yield "history, failed", f"{root}/history/?status=failed"
    yield "history, oldest first", f"{root}/history/?order=oldest"
    yield "history, longest first", f"{root}/history/?order=longest"
    yield "history, of one class", f"{root}/history/?class={stock.CLASS}7"
    yield "history, search, many match", f"{root}/history/?q=customer"
    yield "history, search without a match", f"{root}/history/?q=nothing-like-it"
    yield "error, last page", f"{root}/error/?p=20"
    yield "error, one", f"{root}/error/{7:012x}/change/"
    yield "jobclass, last page", f"{root}/jobclass/?p=4"
    yield "jobclass, search", f"{root}/jobclass/?q=Stamp7"
    yield "jobclass, one", f"{root}/jobclass/{stock.CLASS}7/change/"


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
