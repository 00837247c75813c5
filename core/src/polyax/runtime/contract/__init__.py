"""What the core and devices agree on: backends, executables, queues, reports, the cache, effects, hooks."""
