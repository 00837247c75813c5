"""Level 7: what programs take beside NumPy."""
