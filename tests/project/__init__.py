"""A tiny Django project, also an app: its jobs do what the tests of the worker need."""
