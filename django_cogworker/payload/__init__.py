"""Floor 2: what a job is on the wire.

`arguments` brings Python values through JSON and back, `job` names and checks the fields, `codec`
turns the whole into bytes and back, `failure` adds what went wrong, `unparseable` wraps what is not
a job at all.
"""
