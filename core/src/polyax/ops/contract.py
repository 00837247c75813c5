"""Products of arrays: ``dot_general`` and what is written in terms of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import index
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import Factors, factors
from polyax.meshes.resharding import placed_as
from polyax.ops.accumulators import accumulated, refuse_narrower
from polyax.ops.basis import convert, transpose
from polyax.ops.define import ANY, bilinear_jvp, check_dtype, check_same_dtype
from polyax.ops.precision import canonicalize_precision
from polyax.ops.zeros import zero_cotangents
from polyax.trace.symbolic import Zero, is_undef

__all__ = ["DotDimensionNumbers", "batch_matmul", "dot", "dot_general", "dot_general_p"]

Dims = tuple[int, ...]
DotDimensionNumbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]

dot_general_p = Primitive("dot_general", unset=["out_sharding"])
dot_general_p.linear_in = (0, 1)


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: DotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Sums products over contracting dimensions, separately for each index of the batch dimensions.

    Args:
      dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``.
      preferred_element_type: the dtype to accumulate in and to return; by default that of the operands.
      out_sharding: how the result is to be cut, a ``NamedSharding`` or a ``PartitionSpec`` of the mesh in force.

    Returns:
      An array whose dimensions are the batch dimensions, the rest of ``lhs``, and the rest of ``rhs``.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.dot_general(jnp.ones((2, 3)), jnp.ones((2, 3)), (((1,), (1,)), ((0,), (0,)))).tolist()
    [3.0, 3.0]
    """
    if out_sharding is not None:
        return placed_as(out_sharding, dot_general, lhs, rhs, dimension_numbers, precision, preferred_element_type)
    (lc, rc), (lb, rb) = dimension_numbers
    multiply = partial(
        dot_general_p.bind1,
        dimension_numbers=((_ints(lc), _ints(rc)), (_ints(lb), _ints(rb))),
        precision=canonicalize_precision(precision),
    )
    l_dtype, r_dtype = aval_of(lhs).dtype, aval_of(rhs).dtype
    if l_dtype != r_dtype:
        return _of_two_types(multiply, lhs, rhs, max(l_dtype, r_dtype, key=_generality), preferred_element_type)
    return accumulated(partial(multiply, lhs, rhs), l_dtype, preferred_element_type, refuse_narrower)


def _of_two_types(multiply: Callable[..., Any], lhs: Any, rhs: Any, general: Any, preferred: Any) -> Any:
    """Operands of different types, multiplied as what is asked for: neither's type need hold the other's numbers."""
    dtype = general
    if preferred is not None:
        dtype = dtypes.canonicalize(preferred)
        refuse_narrower(general, dtype)
    return multiply(convert(lhs, dtype), convert(rhs, dtype), preferred_element_type=None)


def _generality(dtype: Any) -> tuple[int, int, float]:
    """Operands of different types are multiplied as the one of which this is larger: by kind, then by size; among those
    that are alike, signed integers come after others, and floats by how far they reach."""
    kinds = (dtypes.is_integer, dtypes.is_float, dtypes.is_complex)
    kind = next((n for n, is_kind in enumerate(kinds, 1) if is_kind(dtype)), 0)
    reach = dtypes.finfo(dtype).max if dtypes.is_float(dtype) else dtypes.is_signed(dtype)
    return kind, dtype.itemsize, float(reach)


def _ints(dims: Sequence[int]) -> Dims:
    return tuple(map(index, dims))


def _others(ndim: int, *taken: Dims) -> Dims:
    used = set().union(*taken)
    return tuple(i for i in range(ndim) if i not in used)


@def_rule(dot_general_p, "abstract_eval")
def _abstract(
    lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers: Any, precision: Any, preferred_element_type: Any
) -> list[ShapedArray]:
    (lc, rc), (lb, rb) = dimension_numbers
    _check_side("lhs", lhs, lb, lc)
    _check_side("rhs", rhs, rb, rc)
    if len(lb) != len(rb):
        raise TypeError(
            "dot_general requires equal numbers of lhs_batch and rhs_batch dimensions, "
            f"got lhs_batch {lb} and rhs_batch {rb}."
        )
    _check_pairs("lhs batch dimensions and rhs batch dimensions", lhs, lb, rhs, rb)
    _check_pairs("contracting dimensions", lhs, lc, rhs, rc)
    check_same_dtype("dot_general", (lhs, rhs))
    check_dtype("dot_general", lhs, ANY)
    shape = [lhs.shape[i] for i in (*lb, *_others(lhs.ndim, lb, lc))]
    shape += [rhs.shape[i] for i in _others(rhs.ndim, rb, rc)]
    dtype = preferred_element_type or lhs.dtype
    return [ShapedArray(tuple(shape), dtype, lhs.weak_type and rhs.weak_type and preferred_element_type is None)]


def _check_side(side: str, x: ShapedArray, batch: Dims, contracting: Dims) -> None:
    if not all(0 <= d < x.ndim for d in (*batch, *contracting)):
        raise TypeError(
            f"dot_general requires {side} dimension numbers to be nonnegative and less than the number of axes of the "
            f"{side} value, got {side}_batch of {batch} and {side}_contracting of {contracting} for {side} of rank "
            f"{x.ndim}"
        )
    for kind, dims in (("batch", batch), ("contracting", contracting)):
        if len(set(dims)) != len(dims):
            raise TypeError(f"dot_general requires {side} {kind} dimensions to be distinct, got {side}_{kind} {dims}.")
    if set(batch) & set(contracting):
        raise TypeError(
            f"dot_general requires {side} batch dimensions to be disjoint from contracting dimensions, "
            f"got {side}_batch {batch} and {side}_contracting {contracting}."
        )


def _check_pairs(what: str, lhs: ShapedArray, l_dims: Dims, rhs: ShapedArray, r_dims: Dims) -> None:
    l_shape, r_shape = tuple(lhs.shape[i] for i in l_dims), tuple(rhs.shape[i] for i in r_dims)
    if l_shape != r_shape:
        raise TypeError(f"dot_general requires {what} to have the same shape, got {l_shape} and {r_shape}.")


@def_rule(dot_general_p, "factors")
def _factors(lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers: Any, **_: Any) -> Factors:
    """Batch dimensions go together; what is contracted is summed."""
    (lc, rc), (lb, rb) = dimension_numbers
    left = list(range(lhs.ndim))
    right = [lhs.ndim + d for d in range(rhs.ndim)]
    for of_lhs, of_rhs in zip((*lc, *lb), (*rc, *rb), strict=True):
        right[of_rhs] = of_lhs
    out = [*lb, *_others(lhs.ndim, lb, lc), *(right[d] for d in _others(rhs.ndim, rb, rc))]
    return factors([left, right], [out], reduced=dict.fromkeys(lc, "sum"))


dot_general_p.jvp = bilinear_jvp(dot_general_p)


@def_rule(dot_general_p, "transpose")
def _transpose(
    cts: Any, lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any, preferred_element_type: Any
) -> list[Any]:
    (ct,) = cts
    (lc, rc), (lb, rb) = dimension_numbers
    if type(ct) is Zero:
        return zero_cotangents(lhs, rhs)
    nb, l_rest = len(lb), lhs.aval.ndim - len(lb) - len(lc) if is_undef(lhs) else np.ndim(lhs) - len(lb) - len(lc)
    of_lhs, of_rhs = tuple(range(nb, nb + l_rest)), tuple(range(nb + l_rest, np.ndim(ct)))
    return [
        _solve(ct, of_rhs, lhs.aval, (lb, lc), rhs, (rb, rc), precision) if is_undef(lhs) else None,
        _solve(ct, of_lhs, rhs.aval, (rb, rc), lhs, (lb, lc), precision) if is_undef(rhs) else None,
    ]


def _solve(
    ct: Any,
    of_other: Dims,
    x: ShapedArray,
    x_dims: tuple[Dims, Dims],
    y: Any,
    y_dims: tuple[Dims, Dims],
    precision: Any,
) -> Any:
    """The cotangent of ``x``: ``ct`` times ``y`` over those dimensions of ``ct`` that come from ``y``.

    That product has the dimensions (batch, rest of x, contracted dimensions in the order of y), which a transposition
    puts into the order of ``x``.
    """
    (x_batch, x_contract), (y_batch, y_contract) = x_dims, y_dims
    numbers = ((of_other, _others(np.ndim(y), y_batch, y_contract)), (tuple(range(len(x_batch))), y_batch))
    product = dot_general_p.bind1(
        ct,
        convert(y, aval_of(ct).dtype, aval_of(y).weak_type),
        dimension_numbers=numbers,
        precision=precision and precision[::-1],
        preferred_element_type=None,
    )
    in_order_of_y = tuple(x_contract[i] for i in np.argsort(y_contract))
    order = (*x_batch, *_others(x.ndim, x_batch, x_contract), *in_order_of_y)
    product = transpose(product, np.argsort(order))
    return convert(product, x.dtype, aval_of(product).weak_type)


@def_rule(dot_general_p, "batch")
def _batch(axis: Any, args: Any, dims: Any, *, dimension_numbers: Any, **params: Any) -> Any:
    """Two batch axes become a batch dimension; one becomes a free dimension of its operand."""
    (lhs, rhs), (ld, rd) = args, dims
    (lc, rc), (lb, rb) = dimension_numbers
    lc, lb = _shifted(lc, ld), _shifted(lb, ld)
    rc, rb = _shifted(rc, rd), _shifted(rb, rd)
    if ld is not None and rd is not None:
        lb, rb, out = (ld, *lb), (rd, *rb), 0
    elif ld is not None:
        out = len(lb) + _others(np.ndim(lhs), lb, lc).index(ld)
    else:
        out = np.ndim(lhs) - len(lc) + _others(np.ndim(rhs), rb, rc).index(rd)
    return dot_general_p.bind_all(lhs, rhs, dimension_numbers=((lc, rc), (lb, rb)), **params), [out]


def _shifted(dims: Dims, new: int | None) -> Dims:
    """Dimensions renumbered for an operand with a batch axis at ``new``."""
    return dims if new is None else tuple(d + (d >= new) for d in dims)


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Vector and matrix products; with ``dimension_numbers``, ``dot_general``.

    Raises:
      ValueError: an operand has more than two dimensions, or the contracted sizes differ.

    >>> import polyax.numpy as jnp
    >>> from polyax import lax
    >>> lax.dot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10])).tolist()
    [21, 43]
    """
    if dimension_numbers is None:
        l_shape, r_shape = np.shape(lhs), np.shape(rhs)
        if not (1 <= len(l_shape) <= 2 and 1 <= len(r_shape) <= 2 and l_shape[-1] == r_shape[0]):
            raise ValueError(
                "jax.lax.dot: dimension_numbers must be specified when not performing simple un-batched matrix-matrix, "
                f"matrix-vector, or vector-vector products; got lhs_shape={l_shape} rhs_shape={r_shape}"
            )
        dimension_numbers = (((len(l_shape) - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    """Matrix products over the last two dimensions, the others being batch dimensions.

    Raises:
      ValueError: fewer than two dimensions, or different numbers of them.
    """
    l_ndim, r_ndim = np.ndim(lhs), np.ndim(rhs)
    if min(l_ndim, r_ndim) < 2:
        raise ValueError(f"Arguments to batch_matmul must be at least 2D, got {l_ndim}, {r_ndim}")
    if l_ndim != r_ndim:
        raise ValueError(f"Arguments to batch_matmul must have same ndim, got {l_ndim}, {r_ndim}")
    batch = tuple(range(l_ndim - 2))
    return dot_general(lhs, rhs, (((l_ndim - 1,), (l_ndim - 2,)), (batch, batch)), precision)
