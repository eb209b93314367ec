"""Jobs that wait, on a page: the three sets and each queue.

A `JobsPage` (page.py) shows them part by part, or those that match a filter (filters.py). What can be done with them is
a `JobDeed` (deeds.py): for one, for those that are selected, or for all that match. The last goes in steps,
request by request (bulk.py).
"""
