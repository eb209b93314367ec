"""The verbs of `manage.py cogworker`: one small class each, in a file with those about the same noun.

A verb says its name, its help and its arguments, and does its work; the command finds it in `registry`.
"""
