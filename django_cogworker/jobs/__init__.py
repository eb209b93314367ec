"""Floor 4: how a project writes jobs.

`base` has `Job`, `function` has `@job`; both are a `Definition` (name, options, signature) in the
`registry`. `call` has the `perform_*` methods, `options` what may be said of a job, `context` what
a running job knows of itself.
"""
