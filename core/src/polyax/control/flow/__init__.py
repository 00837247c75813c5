"""Branches and loops, as primitives and as users call them."""
