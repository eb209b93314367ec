"""Error groups: failures that are the same one, counted together.

Ten thousand entries of the retry set may be one broken partner. Two failures are of one group where the class of
the job, the class of the error and the place are the same: the function of the project that was running deepest.
The line is no part of it, so that a group outlives the next deploy.

`place.py` where an error was raised; `group.py` which group a failure is of; `feature.py` the guest, which
counts in the step that settles the failure, and marks the job's record with its group; `reading.py` the groups as
values.
"""
