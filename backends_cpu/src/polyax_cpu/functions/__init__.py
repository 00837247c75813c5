"""Elementary functions: which code computes each, for single values and for vectors."""
