"""What the feature `history` tells: runs, counters of days, times of job classes."""

from __future__ import annotations

from django_cogworker.features.history.classes import (
    ClassStats,
    Percentiles,
    class_stats,
    percentiles,
)
from django_cogworker.features.history.runs import DayCount, History, HistoryEntry, HistoryPage

__all__ = [
    "ClassStats",
    "DayCount",
    "History",
    "HistoryEntry",
    "HistoryPage",
    "Percentiles",
    "class_stats",
    "percentiles",
]
