"""A real browser over the pages of the admin, with a web server, a worker and a Redis behind it."""
