"""An app with jobs that are tracked."""
