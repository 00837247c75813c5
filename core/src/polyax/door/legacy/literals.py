"""``jax._src.literals``: classes of constants in programs. polyax's programs hold arrays, so nothing is of these."""

from __future__ import annotations


class TypedNdArray:
    """A constant of NumPy that knows its weak type, in JAX."""


class TypedInt(int):
    """A Python integer that knows its dtype, in JAX."""


class TypedFloat(float):
    """A Python float that knows its dtype, in JAX."""


class TypedComplex(complex):
    """A complex number of Python that knows its dtype, in JAX."""


LiteralArray = TypedNdArray
