"""Products of matrices as ``jax.numpy.linalg`` has them, their powers, and what solves and inverts tensors."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

from polyax.lax import lenient as lax
from polyax.numpy import diagonals as _diagonals
from polyax.numpy import products
from polyax.numpy.broadcast import broadcast_to
from polyax.numpy.promotion import as_array, canonicalize_axis, ensure_array, ensure_arrays
from polyax.numpy.shapes import matrix_transpose as matrix_transpose
from polyax.numpy.solutions import inv, solve
from polyax.numpy.triangles import eye

__all__ = [
    "cross", "diagonal", "matmul", "matrix_power", "matrix_transpose", "multi_dot", "outer", "tensordot",
    "tensorinv", "tensorsolve", "trace", "vecdot",
]  # fmt: skip


def matrix_power(a: Any, n: int) -> Any:
    """The ``n``-th power of square matrices; of the inverse if ``n`` is negative.

    Raises:
      TypeError: ``n`` is no integer, or the matrices aren't square.

    >>> import polyax.numpy as jnp
    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5).tolist()
    [[1, 5], [0, 1]]
    """
    try:
        n = operator.index(n)
    except TypeError as e:
        raise TypeError(f"exponent must be an integer, got {n}") from e
    a = as_array(a)
    if a.ndim < 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    if a.shape[-2] != a.shape[-1]:
        raise TypeError(f"Last 2 dimensions of the array must be square, got shape {a.shape}")
    if n == 0:
        return broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape)
    base, n = (inv(a), -n) if n < 0 else (a, n)
    result = None
    while n:
        if n & 1:
            result = base if result is None else products.matmul(result, base)
        n >>= 1
        base = products.matmul(base, base) if n else base
    return result


def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Any:
    """The product of several matrices, in the cheapest order; the first and last may be vectors."""
    arrays = [ensure_array("jnp.linalg.multi_dot", a) for a in arrays]
    if len(arrays) < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={len(arrays)}")
    ends, inner = (arrays[0], arrays[-1]), arrays[1:-1]
    if any(a.ndim not in (1, 2) for a in ends) or any(a.ndim != 2 for a in inner):
        raise ValueError(
            "multi_dot: input arrays must all be two-dimensional, except for the first and last array which may be "
            f"1 or 2 dimensional. Got array shapes {[a.shape for a in arrays]}"
        )
    if any(a.shape[-1] != b.shape[0] for a, b in itertools.pairwise(arrays)):
        raise ValueError(
            "multi_dot: last dimension of each array must match first dimension of following array. "
            f"Got array shapes {[a.shape for a in arrays]}"
        )
    sizes = [1 if arrays[0].ndim == 1 else arrays[0].shape[0], *(a.shape[0] for a in arrays[1:])]
    sizes.append(1 if arrays[-1].ndim == 1 else arrays[-1].shape[1])
    order = functools.cache(lambda i, j: _cheapest(sizes, order, i, j))
    multiply = functools.partial(products.matmul, precision=precision)

    def product(i: int, j: int) -> Any:
        return arrays[i] if i == j else multiply(product(i, order(i, j)[1]), product(order(i, j)[1] + 1, j))

    return product(0, len(arrays) - 1)


def _cheapest(sizes: list[int], order: Any, i: int, j: int) -> tuple[int, int]:
    """Multiplications for the factors i to j, and where the last product cuts them."""
    if i == j:
        return 0, i
    return min((order(i, k)[0] + order(k + 1, j)[0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))


def matmul(x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """``jnp.matmul``."""
    return products.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def outer(x1: Any, x2: Any, /) -> Any:
    """``jnp.outer`` of two vectors."""
    x1, x2 = ensure_arrays("jnp.linalg.outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are {x1.ndim=} {x2.ndim=}")
    return products.outer(x1, x2)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """``jnp.vecdot``."""
    return products.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(
    x1: Any,
    x2: Any,
    /,
    *,
    axes: Any = 2,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """``jnp.tensordot``."""
    how = {"precision": precision, "preferred_element_type": preferred_element_type, "out_sharding": out_sharding}
    return products.tensordot(x1, x2, axes, **how)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The vector product of 3-vectors along ``axis``."""
    x1, x2 = ensure_arrays("jnp.linalg.cross", x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they have "
            f"{x1.shape[axis]=} and {x2.shape[axis]=}"
        )
    return products.cross(x1, x2, axis=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of the last two axes."""
    return _diagonals.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of the last two axes."""
    return _diagonals.trace(x, offset, -2, -1, dtype)


def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of ``a`` as a map from its last axes to its first ``ind`` ones."""
    a = ensure_array("tensorinv", a)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    first, last = a.shape[:ind], a.shape[ind:]
    if math.prod(first) != math.prod(last):
        raise ValueError(
            "tensorinv is only possible when the product of the first `ind` dimensions equals that of the remaining "
            f"dimensions. got arr.shape={a.shape} with ind={ind}."
        )
    return lax.reshape(inv(lax.reshape(a, (math.prod(first), math.prod(last)))), (*last, *first))


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """``x`` with ``tensordot(a, x, x.ndim) = b``."""
    a, b = ensure_array("tensorsolve", a), ensure_array("tensorsolve", b)
    if axes is not None:
        moved = [canonicalize_axis(i, a.ndim) for i in axes]
        a = lax.transpose(a, [i for i in range(a.ndim) if i not in moved] + moved)
    rest = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape:
        raise ValueError(
            "After moving axes to end, leading shape of a must match shape of b. "
            f"got a.shape={a.shape}, b.shape={b.shape}"
        )
    if math.prod(rest) != b.size:
        raise ValueError(
            "Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]); got "
            f"a.shape={a.shape}, b.ndim={b.ndim}."
        )
    return lax.reshape(solve(lax.reshape(a, (b.size, math.prod(rest))), lax.reshape(b, (b.size,))), rest)
