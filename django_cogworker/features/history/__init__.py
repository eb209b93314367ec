"""History: what ran, how it ended, how long it took and how long it waited.

A run that ended leaves three things, all in the step that settles it: a record of itself, one more in the
counters of its day, and one more in two histograms of its job class. `writing` makes them, `feature` hands
them to the worker, `runs` and `classes` read them. What is kept is bounded by `COGWORKER_HISTORY`.
"""
