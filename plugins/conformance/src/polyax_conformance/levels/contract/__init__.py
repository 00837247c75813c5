"""Level 0: what the core relies on."""
