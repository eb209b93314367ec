"""Floor 6: the worker, one OS process that runs jobs.

The life of a job here: the `fetcher` takes it from Redis and offers it in the `hand`; a `processor`
takes it from there and runs it through the server `chain`; `retries` decides about a failure and
`settlement` says where the job goes; the fetcher brings it there in its next call. Around them:
`launcher` (signals, start, stop), `manager` (threads), `heartbeat`, `scheduler` (due jobs),
`recovery` (jobs of dead workers).
"""
