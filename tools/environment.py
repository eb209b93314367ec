"""The virtual environment of `run.py`, in `.venv`.

It must come about on any Python >= 3.11, also on those of Linux distributions, which refuse a
global `pip install` (PEP 668) and may come without `ensurepip`: so the environment is made without
pip, and the pip of the running Python installs into it from outside. A stamp file for each purpose
remembers what was installed, so that the next start is quick.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
MARK = VENV / "made-by-run.json"


class SetupFailed(Exception):
    """The environment could not be made; the text says what to do."""


def venv_python(directory: Path = VENV) -> Path:
    """The interpreter inside a virtual environment."""
    if os.name == "nt":
        return directory / "Scripts" / "python.exe"
    return directory / "bin" / "python"


def prepare(purpose: str, requirements: list[str]) -> Path:
    """Make `.venv` hold the `requirements` (arguments of `pip install`); return its Python.

    `purpose` names the stamp file: each purpose is installed once, and again when `pyproject.toml`,
    its requirements or the Python changed.
    """
    python = _make_venv()
    stamp = VENV / f"installed-{purpose}"
    fingerprint = _fingerprint(requirements)
    if stamp.exists() and stamp.read_text() == fingerprint:
        return python
    print(f"Installing what the {purpose} needs into .venv (half a minute or so) …", flush=True)
    started = time.monotonic()
    _pip_install(python, requirements)
    stamp.write_text(fingerprint)
    print(f"Installed in {time.monotonic() - started:.0f} s.", flush=True)
    return python


def _this_python() -> str:
    return (
        f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]} {sys.base_prefix}"
    )


def _fingerprint(requirements: list[str]) -> str:
    text = "\n".join([_this_python(), *requirements, (ROOT / "pyproject.toml").read_text()])
    return hashlib.sha256(text.encode()).hexdigest()


def _make_venv() -> Path:
    python = venv_python()
    if VENV.exists():
        if _works(python) and (not MARK.exists() or _made_by_this_python()):
            return python
        if not MARK.exists():
            raise SetupFailed(f"{VENV} does not work and is not ours. Move it away and try again.")
        shutil.rmtree(VENV)
    print("Making a virtual environment in .venv …", flush=True)
    venv.EnvBuilder(with_pip=False, symlinks=os.name != "nt").create(VENV)
    MARK.write_text(json.dumps({"python": _this_python()}))
    return python


def _made_by_this_python() -> bool:
    try:
        made_by = json.loads(MARK.read_text())["python"]
    except (ValueError, KeyError):
        return False
    return bool(made_by == _this_python())


def _works(python: Path) -> bool:
    test = "import sys; sys.exit(sys.version_info < (3, 11))"
    try:
        return subprocess.run([python, "-c", test], capture_output=True).returncode == 0
    except OSError:
        return False


def _pip_install(python: Path, requirements: list[str]) -> None:
    pip = _pip_for(python)
    command = [*pip, "install", "--disable-pip-version-check", "--no-input", *requirements]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise SetupFailed(f"{done.stdout}\npip could not install what is needed, see above.")


def _pip_for(python: Path) -> list[str]:
    """A pip that installs into the environment of `python`: its own, ours from outside, or new."""
    own = [str(python), "-m", "pip"]
    if _succeeds([*own, "--version"]):
        return own
    if importlib.util.find_spec("pip"):
        outside = [sys.executable, "-m", "pip", "--python", str(python)]
        if _succeeds([*outside, "--version"]):  # `--python` came with pip 22.3
            return outside
    if _succeeds([str(python), "-m", "ensurepip"]):
        return own
    raise SetupFailed(
        "This Python has neither pip nor ensurepip. On Debian and Ubuntu:\n"
        "    apt install python3-venv python3-pip"
    )


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0
