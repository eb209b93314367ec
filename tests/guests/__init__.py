"""An app with models, enums and dataclasses of its own, whose values are given to jobs."""
