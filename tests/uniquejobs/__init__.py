"""An app with unique jobs."""
