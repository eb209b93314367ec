"""How late scheduled jobs start: N jobs due in the same second, spread evenly over it.

    python -m benchmarks.lateness [jobs] [workers]

Prints the percentiles of (start - due) and exits 1 where p99 is a second or more.
"""

from __future__ import annotations

import sys
import time

from benchmarks.arena import arena


def main(jobs: int = 10_000, workers: int = 1) -> int:
    with arena(jobs) as ring:
        from benchmarks.project.jobs import Stamp
        from django_cogworker.client import push_bulk

        for _ in range(workers):
            ring.start_worker()
        start = time.time() + 6  # the push and the workers' start have to be over by then
        due = [start + number / jobs for number in range(jobs)]
        push_bulk({"class": Stamp, "args": [number], "at": at} for number, at in enumerate(due))
        print(f"pushed {jobs} jobs {start - time.time():.1f} s before the first is due")
        begun = ring.wait_until_all_ran(60)
    late = sorted(ran - at for ran, at in zip(begun, due, strict=True))
    if "-v" in sys.argv:
        print([round((begun[n] - due[n]) * 1000) for n in range(0, jobs, jobs // 20)])
    for name, place in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)):
        print(f"{name}: {late[min(len(late) - 1, int(len(late) * place))] * 1000:8.1f} ms late")
    if late[0] < 0:
        print(f"a job started {-late[0] * 1000:.1f} ms too early")
        return 1
    return int(late[int(len(late) * 0.99)] >= 1.0)


if __name__ == "__main__":
    sys.exit(main(*(int(each) for each in sys.argv[1:] if each != "-v")))
