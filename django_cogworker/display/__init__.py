"""Floor 8: how times, durations, sizes and counts are shown to people. Pure functions, no Redis, no requests.

Beside `admin/` and not in it: template tags need them, and those are loaded in projects without the admin too.
"""

from __future__ import annotations
