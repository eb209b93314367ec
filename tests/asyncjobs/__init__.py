"""An app of coroutines, for the tests of the event loop."""
