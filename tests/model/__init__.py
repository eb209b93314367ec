"""A model of how jobs travel: push, fetch, settle, recover, small enough to visit every state.

It proves of the protocol what tests of the real thing can only try: with a few jobs, two workers
and a few faults (crashes, lost and late messages, false verdicts), no order of events whatever
loses a job, doubles it, runs it again without a reason or strands it. And it proves that each rule
is needed: without it the same search finds a way to do harm.

* `rules`: the rules as switches, and how large a search is.
* `states`: what a state is. `scripts`: the Lua scripts, one function each.
* `client`, `worker`, `fetcher`, `processors`, `network`: who may do what next; `steps`: all of it.
* `invariants`: what must be true. `explore`: the search. `variants`: rules broken on purpose.

`python -m tests.model` explores larger sizes and prints the traces; `docs/internals/model.md` says
what is covered.
"""
