"""Points for regular customers, counted by a task of Django's own API."""
