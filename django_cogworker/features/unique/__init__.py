"""Unique jobs: of jobs with the same arguments only one waits, or only one runs, at a time.

A lock is a text `unique:lock:<key>` whose value is the jid of the job that has it. It is never a truth of
its own: it is claimed in the script that pushes the job, extended in the steps that move it, and deleted in
the step that ends it, so no reaper looks after it. A TTL ends it where other hands took the job away.

| mode | the lock is had | what it keeps out |
| --- | --- | --- |
| `until_executing` | from the push to the start | pushes |
| `until_executed` | from the push to the end, retries included | pushes |
| `while_executing` | from the start to the end | starts: the job waits in line |

A job that waits in line lies in the scheduled set, so it blocks no processor. What frees the lock makes the
first of the line due in the same step; the step that puts a job into the line does so too where the lock is free
by then, so that no job misses its turn. A rare look of its own remains, for locks that end by their TTL.

Unique jobs are tracked (`track` in their payload, for the status feature) unless they say otherwise.

`options.py` what may be said of a job class; `digest.py` the key of a payload; `locks.py` keys, guards and
effects; `running.py` the locks of the jobs that run here, which are extended while they do.
"""

from __future__ import annotations

from django_cogworker.features.unique.feature import Unique

__all__ = ["Unique"]
