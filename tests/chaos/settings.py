"""Settings of the workers and pushers of a trial."""

from __future__ import annotations

from tests.chaos.schedule import ORPHAN_THRESHOLD, SHUTDOWN_TIMEOUT
from tests.project.settings import *  # noqa: F403
from tests.project.settings import INSTALLED_APPS, LOGGING

INSTALLED_APPS = [*INSTALLED_APPS, "tests.chaos"]

COGWORKER_ORPHAN_THRESHOLD = ORPHAN_THRESHOLD
COGWORKER_SHUTDOWN_TIMEOUT = SHUTDOWN_TIMEOUT

LOGGING["formatters"]["line"]["format"] = (
    "%(created).3f %(levelname)s %(process)d %(threadName)s %(name)s: %(message)s"
)
# One line for each of thousands of jobs would hide the others.
LOGGING["loggers"]["django_cogworker.jobs"] = {"level": "ERROR"}
