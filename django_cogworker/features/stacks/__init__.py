"""Stacks: somebody wants to know where the running jobs of a worker are, and its worker writes it down for a while.

`wishes` is the asking and the answer as they lie in Redis, `feature` the worker's part, `looking` how a stack is
read. A job that runs costs nothing more for it.
"""
