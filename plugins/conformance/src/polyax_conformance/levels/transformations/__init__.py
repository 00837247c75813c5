"""Level 3: derivatives, batches and their combinations."""
