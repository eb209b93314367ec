"""Interrupting jobs that run, for the features that have a reason to: a limit of time, somebody's wish.

No feature itself. `insistence` is one interruption, repeated until the job yields; `clock` the thread that calls
it when it is due; `stuck` what becomes of a job that never yields.
"""
