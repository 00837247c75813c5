"""``jax._src.literals``: classes of constants in programs. polyax's programs hold arrays, so nothing is of these."""

from __future__ import annotations


class TypedNdArray:
    """A constant of NumPy that knows its weak type, in JAX."""


LiteralArray = TypedNdArray
