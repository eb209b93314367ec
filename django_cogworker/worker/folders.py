"""Private folders among the temporary files of this machine, for what workers of one user tell each
other.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def folder(purpose: str) -> Path:
    """Where the workers of this user keep files of that purpose. It need not exist."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir()) / f"cogworker-{purpose}-{user}"


def make_folder(purpose: str) -> Path:
    """The same, existing. Raises `OSError` where it cannot be had or is somebody else's."""
    path = folder(purpose)
    path.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
        raise OSError("the folder belongs to somebody else")
    return path
