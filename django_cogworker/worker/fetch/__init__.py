"""The fetcher and its helpers: all of a worker's conversation with Redis about jobs."""
