"""Jobs that come too late: the option `expires_in`."""
