"""An app of jobs that take their workers along."""
