"""The verbs without scripts, for servers that forbid them (and for those too old for ours).

A job that runs is known to its worker's memory alone, so a killed worker loses what it had fetched;
a push repeated after a lost reply may be there twice. Everything else holds: retries, the dead set,
scheduled jobs, pausing, stopping. Tokens work as with scripts, so the fetcher above is the same.
"""

from __future__ import annotations

from django_cogworker.store.plain.verbs import PlainVerbs

__all__ = ["PlainVerbs"]
