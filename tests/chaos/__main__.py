"""`python -m tests.chaos --minutes M --seed S`: one trial; `python3 run.py chaos` calls it."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.chaos import report
from tests.chaos.trial import Trial


def main() -> int:
    parser = argparse.ArgumentParser(prog="run.py chaos")
    parser.add_argument("--minutes", type=float, default=2.0, help="how long the faults go on")
    parser.add_argument("--seed", type=int, help="repeats a run; else a new one is drawn")
    parser.add_argument(
        "--keep", action="store_true", help="keep logs and journal of a good run too"
    )
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(100_000) if options.seed is None else options.seed
    directory = Path(tempfile.mkdtemp(prefix=f"cogchaos-{seed}-"))
    trial = Trial(seed, options.minutes * 60, directory)
    print(report.announcement(seed, trial.faults), flush=True)
    good = False
    try:
        result = trial.run()
        print(report.text(result))
        good = result.good
    finally:
        if good and not options.keep:
            shutil.rmtree(directory)
        else:
            print(f"logs and journal: {directory}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
