"""An app whose jobs ask a database, for the tests with PostgreSQL."""
