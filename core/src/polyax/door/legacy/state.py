"""``jax._src.state.types``: types of mutable arrays."""

from __future__ import annotations

from polyax.ir.aval import ShapedArray


class AbstractRef(ShapedArray):
    """The type of a mutable array."""
