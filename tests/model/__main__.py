"""Search all sizes, also the large ones, and show how each broken rule does harm.

python -m tests.model             everything: about a minute
python -m tests.model small       what the tests search
python -m tests.model variants    the traces alone
"""

from __future__ import annotations

import sys

from tests.model.explore import explore
from tests.model.sizes import LARGE, SMALL
from tests.model.variants import VARIANTS


def main(wishes: list[str]) -> int:
    cases = [] if "variants" in wishes else [*SMALL, *([] if "small" in wishes else LARGE)]
    faults = 0
    for case in cases:
        result = explore(case.rules, case.size)
        print(f"{case.name}: {result}", flush=True)
        faults += bool(result.harm) or result.states < case.at_least
    if "small" not in wishes:
        for variant in VARIANTS:
            result = explore(variant.rules, variant.size, variant.blind_to)
            print(f"\n{variant.name}: {result}", flush=True)
            faults += result.harm != variant.harm
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
