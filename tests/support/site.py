"""A project in a folder of its own, whose files a test edits while its processes run.

It has a `manage.py`, settings with `DEBUG` on, and one app with one job, `things.jobs.Say`, which writes the word
that stands in its module. Jobs of `tests.project` are known too.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from django_cogworker.client import push
from tests.support.processes import marked
from tests.support.worker import ROOT, WorkerProcess

MANAGE = """\
import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_settings")
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""

SETTINGS = """\
from tests.project.settings import *
DEBUG = True
INSTALLED_APPS = [*APPS_FIRST, *INSTALLED_APPS, "things"]
ASGI_APPLICATION = "things.asgi.application"
"""

ASGI = """\
from django.core.asgi import get_asgi_application
application = get_asgi_application()
"""

JOBS = """\
from django_cogworker import Job
from tests.project import journal

WORD = {word!r}


class Say(Job):
    def perform(self):
        journal.write(WORD)
"""

#: Of all processes of a site, whoever started them.
MARK = "COGWORKER_TEST_SITE"


class Site:
    """One project, and the processes that run it."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.folder = folder
        self._env = dict(env)
        self._started: list[ManageProcess] = []
        (folder / "things").mkdir(parents=True)
        self.write("manage.py", MANAGE)
        self.settings()
        self.write("things/__init__.py", "")
        self.write("things/asgi.py", ASGI)
        self.says("one")

    def write(self, path: str, text: str) -> None:
        """Save a file as editors do: whole."""
        target = self.folder / path
        draft = target.with_suffix(".draft")
        draft.write_text(text)
        draft.replace(target)

    def settings(self, *apps_first: str, **more: Any) -> None:
        """Write the settings, with these apps before the others."""
        lines = "".join(f"{name} = {value!r}\n" for name, value in more.items())
        self.write("site_settings.py", SETTINGS.replace("APPS_FIRST", repr(apps_first)) + lines)

    def says(self, word: str) -> None:
        """Edit the job."""
        self.write("things/jobs.py", JOBS.format(word=word))

    def ask(self) -> None:
        """Enqueue the job."""
        push({"class": "things.jobs.Say", "args": []})

    def start(self, *args: str) -> ManageProcess:
        process = ManageProcess(self, self._env, *args)
        self._started.append(process)
        process.start()
        return process

    def processes(self, *words: str) -> dict[int, str]:
        """Those that live, with these words in their command line."""
        every = marked(f"{MARK}={self.folder}")
        return {pid: line for pid, line in every.items() if all(each in line for each in words)}

    def close(self) -> None:
        # First of all those that are in no group of ours: they hold open what the others write to.
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self._started:
            process.close()
        for process in self._started:
            print(f"-- {' '.join(process.argv)}: exit {process.returncode}\n{process.output}")


class ManageProcess(WorkerProcess):
    """`manage.py …` of a site."""

    def __init__(self, site: Site, env: Mapping[str, str], *args: str) -> None:
        super().__init__(env={**env, MARK: str(site.folder)}, cwd=site.folder)
        self.env["PYTHONPATH"] = str(ROOT)
        self.env["PYTHONDONTWRITEBYTECODE"] = "1"
        del self.env["DJANGO_SETTINGS_MODULE"]
        self.argv = [sys.executable, "manage.py", *args]
