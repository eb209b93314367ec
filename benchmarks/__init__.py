"""Benchmarks. Each is a module with a `main`: `python -m benchmarks.lateness`, `python -m benchmarks.drain`."""
