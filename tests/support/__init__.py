"""What the tests share: real servers, a proxy that breaks things, real workers, ways to wait."""
