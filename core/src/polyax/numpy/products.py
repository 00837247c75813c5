"""Products of vectors, matrices and tensors; each becomes one ``dot_general``."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.lax import lenient as lax
from polyax.meshes.resharding import placed_as, with_out_sharding
from polyax.numpy.promotion import canonical_dtype, canonicalize_axis, check_arraylike, of_one_dtype, unwrap
from polyax.numpy.shapes import moveaxis, ravel
from polyax.numpy.ufuncs import conjugate, multiply

__all__ = ["cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "vdot", "vecdot", "vecmat"]


def _preferred(dtype: Any) -> Any:
    return None if dtype is None else canonical_dtype(dtype)


def dot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None) -> Any:
    """The sum of products over the last axis of ``a`` and the last but one (or only) axis of ``b``.

    Raises:
      TypeError: the sizes differ.

    >>> import polyax.numpy as jnp
    >>> jnp.dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])).item()
    11.0
    """
    if out_sharding is not None:
        return placed_as(out_sharding, dot, a, b, precision=precision, preferred_element_type=preferred_element_type)
    a, b = of_one_dtype("dot", a, b)
    if not a.ndim or not b.ndim:
        contract: tuple[Any, Any] = ((), ())
    else:
        contract = ((a.ndim - 1,), (max(b.ndim - 2, 0),))
    return lax.dot_general(
        a, b, (contract, ((), ())), precision=precision, preferred_element_type=_preferred(preferred_element_type)
    )


def matmul(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None
) -> Any:
    """The matrix product, over broadcast leading axes. Vectors count as a row before and a column after a matrix.

    Raises:
      ValueError: an argument is a scalar.
      TypeError: the sizes differ.

    >>> import polyax.numpy as jnp
    >>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10])).tolist()
    [21, 43]
    """
    if out_sharding is not None:
        return placed_as(out_sharding, matmul, a, b, precision=precision, preferred_element_type=preferred_element_type)
    a, b = of_one_dtype("matmul", a, b)
    for i, x in enumerate((a, b)):
        if x.ndim == 0:
            raise ValueError(f"matmul input operand {i} must have ndim at least 1, but it has ndim {x.ndim}")
    plan = _plan_product(a.shape, b.shape)
    product = lax.dot_general(
        lax.squeeze(a, plan.a_ones),
        lax.squeeze(b, plan.b_ones),
        plan.dimension_numbers,
        precision=precision,
        preferred_element_type=_preferred(preferred_element_type),
    )
    return lax.transpose(product, plan.order) if plan.order else product


class _Plan(NamedTuple):
    """A matrix product as ``dot_general`` of operands without the axes ``ones``; ``order``: how its result's axes are
    to be put, empty if they are in order."""

    a_ones: tuple[int, ...]
    b_ones: tuple[int, ...]
    dimension_numbers: Any
    order: tuple[int, ...]


@functools.lru_cache(1024)
def _plan_product(a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> _Plan:
    """A batch axis of one operand alone may have to come before the rows or columns of the other."""
    a_batch, b_batch = a_shape[:-2], b_shape[:-2]
    batch = lax.broadcast_shapes(a_batch, b_batch)
    a_own, b_own = _batch_axes(a_batch, batch), _batch_axes(b_batch, batch)
    a_ones, b_ones = _of_size_one(a_batch, batch), _of_size_one(b_batch, batch)
    a_ndim, b_ndim, rank = len(a_shape) - len(a_ones), len(b_shape) - len(b_ones), len(batch)
    shared = [i for i in range(rank) if i in a_own and i in b_own]
    only_a, only_b = ([i for i in own if i not in shared] for own in (a_own, b_own))
    contract = ((a_ndim - 1,), (b_ndim - 2 if b_ndim - len(b_own) > 1 else b_ndim - 1,))
    rows, columns = a_ndim - len(a_own) - 1, b_ndim - len(b_own) - 1
    order = [*shared, *only_a, *[rank] * rows, *only_b, *[rank + 1] * columns]
    back = tuple(np.argsort(order, kind="stable").tolist())
    numbers = contract, (tuple(a_own[i] for i in shared), tuple(b_own[i] for i in shared))
    return _Plan(a_ones, b_ones, numbers, () if order == sorted(order) else back)


def _of_size_one(own: tuple[int, ...], batch: tuple[int, ...]) -> tuple[int, ...]:
    """Batch axes that are stretched: left out, since the other operand brings them."""
    new = len(batch) - len(own)
    return tuple(i for i, n in enumerate(own) if n == 1 and batch[new + i] != 1)


def _batch_axes(own: tuple[int, ...], batch: tuple[int, ...]) -> dict[int, int]:
    """Axis of the result's batch -> axis of the operand, once its stretched axes are left out."""
    new = len(batch) - len(own)
    kept = [i for i in range(len(own)) if i not in _of_size_one(own, batch)]
    return {new + i: n for n, i in enumerate(kept)}


def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sum of ``conj(a) * b`` over all elements, both flattened.

    >>> import polyax.numpy as jnp
    >>> jnp.vdot(jnp.array([1, 2]), jnp.array([3, 4])).item()
    11
    """
    check_arraylike("vdot", a, b)
    a = unwrap(a)
    a = conjugate(a) if dtypes.is_complex(aval_of(a).dtype) else a
    return dot(ravel(a), ravel(b), precision=precision, preferred_element_type=preferred_element_type)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sum of ``conj(x1) * x2`` along ``axis``; the other axes broadcast."""
    a, b = of_one_dtype("jnp.vecdot", x1, x2)
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"axes must match; got shapes {a.shape} and {b.shape} with axis={axis}")
    a = conjugate(a) if dtypes.is_complex(a.dtype) else a
    row, column = lax.expand_dims(a, (a.ndim - 1,)), lax.expand_dims(b, (b.ndim,))
    product = matmul(row, column, precision=precision, preferred_element_type=preferred_element_type)
    return lax.squeeze(product, (product.ndim - 2, product.ndim - 1))


def matvec(x1: Any, x2: Any, /) -> Any:
    """Matrices times vectors, over broadcast leading axes."""
    a, b = of_one_dtype("matvec", x1, x2)
    if a.ndim < 2 or b.ndim < 1:
        raise ValueError(f"matvec requires a matrix and a vector, got shapes {a.shape} and {b.shape}")
    _check_core_sizes("matvec", a, b, -1, -1)
    product = matmul(a, lax.expand_dims(b, (b.ndim,)))
    return lax.squeeze(product, (product.ndim - 1,))


def vecmat(x1: Any, x2: Any, /) -> Any:
    """Conjugated vectors times matrices, over broadcast leading axes."""
    a, b = of_one_dtype("vecmat", x1, x2)
    if a.ndim < 1 or b.ndim < 2:
        raise ValueError(f"vecmat requires a vector and a matrix, got shapes {a.shape} and {b.shape}")
    _check_core_sizes("vecmat", a, b, -1, -2)
    product = matmul(lax.expand_dims(conjugate(a), (a.ndim - 1,)), b)
    return lax.squeeze(product, (product.ndim - 2,))


def _check_core_sizes(name: str, a: Any, b: Any, a_axis: int, b_axis: int) -> None:
    if a.shape[a_axis] != b.shape[b_axis]:
        raise ValueError(
            f"{name}: inconsistent size for core dimension: {a.shape[a_axis]} vs {b.shape[b_axis]} in shapes {a.shape} "
            f"and {b.shape}"
        )


def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sum of products over the last axes of both.

    >>> import polyax.numpy as jnp
    >>> jnp.inner(jnp.array([1, 2]), jnp.array([3, 4])).item()
    11
    """
    a, b = of_one_dtype("inner", a, b)
    if not a.ndim or not b.ndim:
        return dot(a, b, precision=precision, preferred_element_type=preferred_element_type)
    contract = ((a.ndim - 1,), (b.ndim - 1,))
    return lax.dot_general(
        a, b, (contract, ((), ())), precision=precision, preferred_element_type=_preferred(preferred_element_type)
    )


def outer(a: Any, b: Any, out: None = None) -> Any:
    """All products of an element of ``a`` and one of ``b``, both flattened: shape (a.size, b.size)."""
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.outer is not supported.")
    a, b = of_one_dtype("outer", a, b)
    return multiply(lax.reshape(a, (a.size, 1)), lax.reshape(b, (1, b.size)))


@with_out_sharding
def tensordot(
    a: Any,
    b: Any,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The sum of products over several axes.

    Args:
      axes: how many of the last axes of ``a`` meet the first ones of ``b``; or two sequences of axes.

    >>> import polyax.numpy as jnp
    >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((3, 4, 5)), axes=2).shape
    (2, 5)
    """
    a, b = of_one_dtype("tensordot", a, b)
    contract = _contracted_axes(axes, a.ndim, b.ndim)
    return lax.dot_general(
        a, b, (contract, ((), ())), precision=precision, preferred_element_type=_preferred(preferred_element_type)
    )


def _contracted_axes(axes: Any, a_ndim: int, b_ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if hasattr(axes, "__index__"):
        count = operator.index(axes)
        if count > min(a_ndim, b_ndim):
            raise TypeError(f"Number of tensordot axes (axes {axes}) exceeds input ranks ({a_ndim} and {b_ndim})")
        return tuple(range(a_ndim - count, a_ndim)), tuple(range(count))
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        raise TypeError(
            f"tensordot axes argument must be an int, a pair of ints, or a pair of lists/tuples of ints, got {axes}"
        )
    if any(isinstance(x, str) for x in axes):
        raise TypeError(
            f"tensordot requires both axes lists to be either ints, tuples or lists, got {axes[0]} and {axes[1]}"
        )
    first, second = (tuple(x) if isinstance(x, Sequence) else (x,) for x in axes)
    if len(first) != len(second):
        raise TypeError(f"tensordot requires axes lists to have equal length, got {axes[0]} and {axes[1]}.")
    return tuple(canonicalize_axis(i, a_ndim) for i in first), tuple(canonicalize_axis(i, b_ndim) for i in second)


def kron(a: Any, b: Any) -> Any:
    """The Kronecker product: each element of ``a`` times all of ``b``.

    >>> import polyax.numpy as jnp
    >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2])).tolist()
    [1, 2, 10, 20]
    """
    a, b = of_one_dtype("kron", a, b)
    rank = max(a.ndim, b.ndim)
    a, b = lax.broadcast_to_rank(a, rank), lax.broadcast_to_rank(b, rank)
    left = lax.reshape(a, [n for size in a.shape for n in (size, 1)])
    right = lax.reshape(b, [n for size in b.shape for n in (1, size)])
    return lax.reshape(lax.mul(left, right), [math.prod(pair) for pair in zip(a.shape, b.shape, strict=True)])


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """The vector product of 2- or 3-vectors along an axis; the product of two 2-vectors is a scalar.

    >>> import polyax.numpy as jnp
    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = of_one_dtype("cross", a, b)
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError("Dimension must be either 2 or 3 for cross product")
    batch = lax.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    x, y = ([lax.index_in_dim(v, i, v.ndim - 1, keepdims=False) for i in range(v.shape[-1])] for v in (a, b))
    x, y = ([lax.broadcast_to_rank(c, len(batch)) for c in v] for v in (x, y))

    def minor(i: int, j: int) -> Any:
        return lax.sub(lax.mul(x[i], y[j]), lax.mul(x[j], y[i]))

    if len(x) == len(y) == 2:
        return minor(0, 1)
    zero = lax.full_like(x[0], 0)
    x, y = ([*v, zero] if len(v) == 2 else v for v in (x, y))
    parts = [minor(1, 2), minor(2, 0), minor(0, 1)]
    return moveaxis(lax.concatenate([lax.expand_dims(p, (p.ndim,)) for p in parts], len(batch)), -1, axisc)
