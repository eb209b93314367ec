"""Floor 3: enqueueing.

`push` and `push_bulk` are the low-level way in, for jobs whose class this process does not have;
job classes use `enqueue` and `enqueue_many`. The way of a job: middleware (`chain`) → encode → wait
for the commit (`commit`) → a `Transport` (Redis with its `lanes`, or a test mode's).
"""

from __future__ import annotations

from django_cogworker.client.push import apush, apush_bulk, enqueue, enqueue_many, push, push_bulk

__all__ = ["apush", "apush_bulk", "enqueue", "enqueue_many", "push", "push_bulk"]
