"""Time limits of runs: the option `timeout`."""
