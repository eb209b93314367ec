#!/usr/bin/env python3
"""Try django-cogworker, or test it, from a fresh checkout. Needs Python 3.11 and nothing else.

python3 run.py demo             a small shop with jobs, worker and admin; Ctrl-C ends it
python3 run.py demo --check     the same without staying: exit status 0 if all jobs did well
python3 run.py test             the whole test suite
python3 run.py test tests/unit  arguments go to pytest
python3 run.py chaos            faults for two minutes, then the books: was a job lost or doubled?
                                --minutes M for longer, --seed S to repeat a run, --keep for its logs
python3 run.py pictures         the pictures of the documentation, taken anew; needs a Chromium
"""

from __future__ import annotations

import argparse
import sys

if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(f"Python 3.11 or later is needed; this is {sys.version.split()[0]}.")

from tools import chaos, demo, pictures, suite
from tools.environment import SetupFailed


def main(argv: list[str]) -> int:
    """Run one of the commands and return the exit status."""
    if argv[:1] == ["test"]:  # all that follows is pytest's, also what looks like an option
        return suite.run(argv[1:])
    if argv[:1] == ["chaos"]:
        return chaos.run(argv[1:])
    parser = argparse.ArgumentParser(
        prog="run.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    demo_parser = commands.add_parser("demo", help="start the test project")
    demo_parser.add_argument(
        "--check",
        action="store_true",
        help="leave when the demo jobs have run; 1 if any went wrong",
    )
    demo_parser.add_argument("--port", type=int, help="of the web server; 8000, or a free one")
    commands.add_parser("test", help="run the tests; arguments go to pytest")
    commands.add_parser("chaos", help="strike a fleet with faults, then check that no job was lost")
    commands.add_parser("pictures", help="take the pictures of the documentation")
    options = parser.parse_args(argv)
    if options.command == "pictures":
        return pictures.run()
    return demo.run(check=options.check, port=options.port)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except SetupFailed as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
