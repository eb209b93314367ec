"""Cancelling: a job that waits is taken away, one that runs is asked to end.

`asked` is the list of jids in Redis that workers keep in memory, `feature` what a worker does with it,
`calling` what `cancel()` does.
"""
