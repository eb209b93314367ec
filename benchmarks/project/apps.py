"""The app of the benchmark's jobs. It comes before `django_cogworker`, so it may take features away."""

from __future__ import annotations

import os

from django.apps import AppConfig


class BenchConfig(AppConfig):
    name = "benchmarks.project"

    def ready(self) -> None:
        if os.environ.get("BENCH_FEATURES", "all") == "none":
            from django_cogworker.features import registry

            registry.FEATURES.clear()
