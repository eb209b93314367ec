"""Periodic jobs: entries with a cron line, each slot of which becomes one job, whatever the number of workers.

Every worker looks. The claim of a slot and the push of its job are one script: the guard "the last
slot rises" refuses all but the first, and is put back where the job cannot be written. So there is no
leader, and no rollback that could be forgotten.
"""
