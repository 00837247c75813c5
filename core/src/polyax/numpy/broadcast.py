"""Broadcasting to a common shape, and choice between arrays. Used by every other family."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray, aval_of
from polyax.lax import lenient as lax
from polyax.meshes.resharding import placed_as
from polyax.numpy.promotion import as_array, check_arraylike, concrete_shape, promote_dtypes, shape_of, unwrap

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to"]


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to.

    Raises:
      ValueError: the shapes don't fit.

    >>> import polyax.numpy as jnp
    >>> jnp.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return lax.broadcast_shapes(*(concrete_shape(s) for s in shapes)) if shapes else ()


def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Any:
    """``array`` repeated along new leading axes and axes of size one, so that it has ``shape``.

    Raises:
      ValueError: ``array`` does not broadcast to ``shape``.

    >>> import polyax.numpy as jnp
    >>> jnp.broadcast_to(jnp.arange(2), (2, 2)).tolist()
    [[0, 1], [0, 1]]
    """
    if out_sharding is not None:
        return placed_as(out_sharding, broadcast_to, array, shape)
    check_arraylike("broadcast_to", array)
    array, shape = unwrap(array), concrete_shape(shape)
    have = shape_of(array)
    if have == shape:
        return as_array(array)
    if not _broadcasts(have, shape):
        raise _unbroadcastable(aval_of(array), shape)
    return _spread(array, have, shape)


def _unbroadcastable(aval: ShapedArray, shape: tuple[int, ...]) -> ValueError:
    if len(shape) < aval.ndim:
        return ValueError(f"Cannot broadcast to shape with fewer dimensions: arr_shape={aval.shape} shape={shape}")
    wanted = ShapedArray(shape, aval.dtype)
    return ValueError(f"Incompatible types for broadcasting: input type={aval!s} and requested type={wanted}")


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    new = len(target) - len(shape)
    return new >= 0 and all(a in (1, b) for a, b in zip(shape, target[new:], strict=True))


def _spread(array: Any, have: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """One ``broadcast_in_dim``: axes of size one stretch, new ones lead."""
    new = len(shape) - len(have)
    return lax.broadcast_in_dim(array, shape, tuple(range(new, len(shape))))


def broadcast_arrays(*args: Any) -> list[Any]:
    """All arguments broadcast to their common shape.

    >>> import polyax.numpy as jnp
    >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones((3, 1)), jnp.ones(4))]
    [(3, 4), (3, 4)]
    """
    check_arraylike("broadcast_arrays", *args)
    args = tuple(map(unwrap, args))
    shapes = [shape_of(x) for x in args]
    if all(s == shapes[0] for s in shapes[1:]):
        return [as_array(x) for x in args]
    shape = lax.broadcast_shapes(*shapes)
    return [broadcast_to(x, shape) for x in args]


def as_mask(condition: Any) -> Any:
    """Nonzero elements are true."""
    if aval_of(condition).dtype == np.dtype(bool):
        return condition
    return lax.ne(condition, 0)


def choose(condition: Any, x: Any, y: Any) -> Any:
    """``x`` where the condition holds, else ``y``; dtypes are promoted, shapes broadcast."""
    check_arraylike("where", condition, x, y)
    condition = as_mask(unwrap(condition))
    x, y = promote_dtypes(unwrap(x), unwrap(y))
    if shape_of(condition):
        condition, x, y = broadcast_arrays(condition, x, y)
    elif shape_of(x) != shape_of(y):
        x, y = broadcast_arrays(x, y)
    return lax.select(condition, x, y)
