"""The files of the project, for `runworker --reload`: when has one changed?

A worker that runs asks Django's own reloader: it knows what is loaded, and templates and translations, whose
change needs no new process. Where the new code does not even load there is no such worker; then the parent
looks at all Python files in the folders that its own modules came from, for the file that is to be mended may
be one that it never loaded.
"""

from __future__ import annotations

import logging
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.utils import autoreload

logger = logging.getLogger("django_cogworker")

#: Folders that hold no code of the project, or a world of code that does not change.
FOREIGN = {"__pycache__", "node_modules", "site-packages", "dist-packages"}
#: Where Python and what is installed lie, by the names of `sysconfig`.
LIBRARIES = ("stdlib", "platstdlib", "purelib", "platlib")
#: Folders with this file are virtual environments.
VENV_MARK = "pyvenv.cfg"


def wait_for_change(changed: Callable[[str], None]) -> None:
    """The body of a thread: call `changed` with the path of the first file whose change needs a new process."""
    last = Path()

    def note(sender: Any, file_path: Path, **kwargs: Any) -> None:
        nonlocal last
        last = file_path

    reloader = autoreload.StatReloader()
    autoreload.autoreload_started.send(sender=reloader)
    autoreload.file_changed.connect(note, sender=reloader)
    looks = reloader.tick()
    try:
        next(looks)
        logger.info("Watching the files of the project.")
        for _ in looks:
            pass
    except SystemExit:  # Django's word for: load the code anew
        changed(str(last))


def stamps() -> dict[str, int]:
    """When each Python file of the project was changed."""
    found: dict[str, int] = {}
    for folder in _topmost(_own_folders()):
        for path in _python_files(folder):
            with suppress(OSError):
                found[path] = os.stat(path).st_mtime_ns
    return found


def _own_folders() -> set[Path]:
    """Those of the loaded modules that are neither Python's nor installed."""
    paths = sysconfig.get_paths()
    libraries = {Path(paths[each]).resolve() for each in LIBRARIES}
    found = set()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file is None:
            continue
        folder = Path(file).resolve().parent
        places = {folder, *folder.parents}
        if not places & libraries and not FOREIGN & set(folder.parts):
            found.add(folder)
    return found


def _topmost(folders: set[Path]) -> list[Path]:
    return [each for each in folders if not folders & set(each.parents)]


def _python_files(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [
            each
            for each in folders
            if each not in FOREIGN
            and not each.startswith(".")
            and not os.path.exists(os.path.join(place, each, VENV_MARK))
        ]
        for name in names:
            if name.endswith(".py"):
                yield os.path.join(place, name)
