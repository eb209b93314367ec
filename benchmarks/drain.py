"""How fast workers run jobs that do nothing, and how fast they are enqueued.

python -m benchmarks.drain [jobs] [workers]

The last lines are processor time a job, which a busy machine changes less than jobs/s; that of the workers with their
start. With BENCH_HISTORY=off no history is written, with BENCH_FEATURES=none the worker has the bare core.
"""

from __future__ import annotations

import resource
import sys
import time

from benchmarks.arena import arena


def redis_seconds() -> float:
    """Processor time that Redis has used."""
    from django_cogworker.store.store import get_store

    info = get_store().client.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def main(jobs: int = 50_000, workers: int = 1) -> int:
    with arena(jobs) as ring:
        from benchmarks.project.jobs import Stamp

        single = min(2000, jobs // 10)
        begun = time.perf_counter()
        for number in range(single):
            Stamp.perform_async(number)
        print(f"push, one by one: {single / (time.perf_counter() - begun):10,.0f} jobs/s")
        begun = time.perf_counter()
        Stamp.perform_bulk((number,) for number in range(single, jobs))
        print(f"push, in bulk:    {(jobs - single) / (time.perf_counter() - begun):10,.0f} jobs/s")
        before = redis_seconds()
        for _ in range(workers):
            ring.start_worker()
        stamps = ring.wait_until_all_ran(120)
        ring.stop_workers()
        redis, used = redis_seconds() - before, resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"drain:            {jobs / (max(stamps) - min(stamps)):10,.0f} jobs/s")
    print(f"workers:          {(used.ru_utime + used.ru_stime) / jobs * 1e6:10,.1f} µs a job")
    print(f"Redis:            {redis / jobs * 1e6:10,.1f} µs a job")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
