"""Floor 5: features, each a guest in a folder of its own, made known by one line in `registry`."""
