"""How fast workers run jobs that do nothing, and how fast they are enqueued.

python -m benchmarks.drain [jobs] [workers]
"""

from __future__ import annotations

import sys
import time

from benchmarks.arena import arena


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
        for _ in range(workers):
            ring.start_worker()
        stamps = ring.wait_until_all_ran(120)
    print(f"drain:            {jobs / (max(stamps) - min(stamps)):10,.0f} jobs/s")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
