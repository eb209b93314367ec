"""Status: what became of a tracked job, by its jid: its state, its place, progress, stored fields, result.

One hash a tracked job, moved by the same scripts that move the job; the start and reports of progress
are calls of their own. `record` says what is written, `feature` when, `reading` makes values of it,
`waiting` waits for the end, `modes` keeps it in memory in the test modes.
"""
