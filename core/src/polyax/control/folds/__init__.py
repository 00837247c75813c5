"""Reductions, windows and scatters with a computation of the user."""
