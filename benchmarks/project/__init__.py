"""The Django project that the benchmarks run: an app with jobs that do next to nothing."""
