"""Jobs that take longer than they may, for tests of time limits and expiry."""
