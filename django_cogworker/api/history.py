"""What the feature `history` tells: runs, counters of days, times of job classes."""

from __future__ import annotations

from django_cogworker.features.history.classes import (
    ClassHour,
    ClassStats,
    ClassTimes,
    Percentiles,
    class_hours,
    class_names,
    class_stats,
    class_times,
    percentiles,
)
from django_cogworker.features.history.ranking import HistoryRanking
from django_cogworker.features.history.records import HistoryEntry
from django_cogworker.features.history.runs import DayCount, History, HistoryPage
from django_cogworker.features.history.searching import HistorySlice

__all__ = [
    "ClassHour",
    "ClassStats",
    "ClassTimes",
    "DayCount",
    "History",
    "HistoryEntry",
    "HistoryPage",
    "HistoryRanking",
    "HistorySlice",
    "Percentiles",
    "class_hours",
    "class_names",
    "class_stats",
    "class_times",
    "percentiles",
]
