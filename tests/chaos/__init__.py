"""Faults by a seed: real workers and a real Redis are killed, frozen, cut off and filled up while
thousands of jobs run, and then the books are checked.

`schedule` (what is done when, from the seed alone), `faults` (how it is done), `fleet` (the
processes), `load` and `jobs` (what is pushed and run), `watch` (who lived when), `records` (what was
written down), `ledger` (the verdict), `aftermath` (drain, leftovers), `trial` (all of it in one
run), `report` (the table). `python3 run.py chaos --minutes M --seed S` runs it.
"""
