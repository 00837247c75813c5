"""Convolutions: which code computes each kind of them, and that code."""
