"""Tasks of Django (`django.tasks`): what of them is a matter of jobs.

A task is an ordinary job whose payload has the field `task`, the alias of its backend. It is tracked, so it stands on
the feature `status`: `record` adds to the status of a job what a result has to tell besides, `reading` makes a value of
it, `feature` says when. It knows nothing of `django.tasks` itself, which need not be installed: the package
`django_cogworker.tasks` does, and takes its place at the `seam`.
"""
