"""The test project: a small shop that leaves its slow work to jobs."""
