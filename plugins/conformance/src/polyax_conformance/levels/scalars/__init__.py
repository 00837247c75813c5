"""Level 1: operations on all numbers."""
