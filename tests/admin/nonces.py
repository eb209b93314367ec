"""A context processor as a project with a strict policy has it."""

from __future__ import annotations


def nonce(request):
    return {"csp_nonce": "n0nce"}
