"""`run.py pictures`: the pictures of the admin in the documentation, taken anew.

The demo is started beside the one that somebody may have, with data of its own, made to look like the middle of a bad
day (`manage.py pose_demo`). Then `tools/camera.py` opens the pages in the Chromium of this machine.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from tools import demo, environment
from tools.environment import ROOT

REQUIREMENTS = [*demo.REQUIREMENTS, "playwright>=1.50"]
PICTURES = ROOT / "docs" / "pictures"


def run() -> int:
    """Take all pictures and return the exit status."""
    python = environment.prepare("pictures", REQUIREMENTS)
    with tempfile.TemporaryDirectory(prefix="cogworker-") as var:
        os.environ["SHOP_VAR"] = var  # for the children, too
        demo.VAR = Path(var)
        shop = demo.Demo(python, demo.usable_port(None, [0]))
        try:
            shop.start()
            if not shop.try_jobs():
                return 1
            shop.pose()
            command = [str(python), "-m", "tools.camera", shop.address, *demo.LOGIN, str(PICTURES)]
            return subprocess.run(command, cwd=ROOT).returncode
        except demo.DemoFailed as error:
            print(f"\nFAILED: {error}")
            return 1
        finally:
            shop.kill_now()
            shop.stop()
