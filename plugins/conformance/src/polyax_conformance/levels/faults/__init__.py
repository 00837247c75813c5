"""Level 6: what goes wrong around a program."""
