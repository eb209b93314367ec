"""An app whose jobs, hooks, middleware and signal receivers do everything wrong that a project can."""
