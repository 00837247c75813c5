"""Level 2: every primitive, with all kinds of parameters."""
