"""Context: language, time zone and chosen context variables of who enqueues, for the job that runs."""
