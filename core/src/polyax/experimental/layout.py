"""``polyax.experimental.layout``: in which order an array's dimensions lie in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.meshes.formats import Format as Format
from polyax.meshes.formats import Layout as Layout
from polyax.trace.paths import broadcast_prefix
from polyax.trace.tracer import Tracer
from polyax.trace.tree import tree_flatten, tree_unflatten


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """``x``, whose dimensions are to lie in the order that is given.

    In programs that is without effect: how results between operations lie is their backend's choice, and numbers don't
    depend on it.

    Args:
      x: arrays, in any pytree.
      layouts: a ``Layout``, or a pytree of those that ``x`` begins with.

    Raises:
      ValueError: something is no layout, or one of an array of another rank.
      NotImplementedError: an array, outside of programs, would lie in another order than row by row.

    >>> import polyax, polyax.numpy as jnp
    >>> polyax.jit(lambda x: with_layout_constraint(x.T, Layout((1, 0))))(jnp.ones((2, 3))).shape
    (3, 2)
    """
    leaves, tree = tree_flatten(x)
    for leaf, layout in zip(leaves, broadcast_prefix(layouts, x, name="with_layout_constraint layouts"), strict=True):
        if not isinstance(layout, Layout):
            raise ValueError(
                f"layouts passed to `with_layout_constraint` must be of type `Layout`. Got {layout} of type "
                f"{type(layout)}"
            )
        layout.check(np.shape(leaf))
        if not isinstance(leaf, Tracer):
            layout.check_usual()
    return tree_unflatten(tree, leaves)
