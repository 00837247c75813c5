"""``lax.reduce_window``: the elements of each window of an array combined by any computation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from polyax.control.folds.reducers import (
    elementwise_on,
    flat_operands,
    identity,
    known_monoid,
    monoid_of,
    scalar_program,
)
from polyax.control.inner.lists import cut
from polyax.ir.aval import ShapedArray
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import free_but
from polyax.ops.basis import add_p, full_like, match_axis, select_n, shape_tuple
from polyax.ops.conv_shapes import dilated, padtype_to_pads, repeated
from polyax.ops.elementwise import max_p, min_p
from polyax.ops.window_folds import Windows, fold_windows, starting_with, windows_in_turn
from polyax.ops.windows import check_windows, reduce_window_max_p, reduce_window_min_p, reduce_window_sum_p
from polyax.trace.tree import tree_unflatten
from polyax.transforms.jvp import jvp_flat
from polyax.transforms.vmap import batch_flat

OVER_WINDOWS = {"add": reduce_window_sum_p, "max": reduce_window_max_p, "min": reduce_window_min_p}

reduce_window_p = Primitive("reduce_window", multiple_results=True)


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """The elements of each window of ``operand``, combined by ``computation`` with ``init_value``.

    Sums and extrema of this module with their identities become ``reduce_window_sum`` and so on. Places where there is
    no element, because of padding or dilation, are left out.

    Args:
      operand: a pytree of arrays of one shape.
      init_value: scalars in the same structure.
      computation: an associative function of two such pytrees of scalars.
      window_dimensions: the size of a window in each dimension.
      window_strides: how far apart windows begin; 1 without.
      padding: ``'VALID'``, ``'SAME'``, ``'SAME_LOWER'``, or (low, high) for each dimension.
      base_dilation: how far apart the elements of ``operand`` are put; 1 without.
      window_dilation: how far apart the elements of a window are; 1 without.

    Raises:
      TypeError: parameters that don't fit the operand.

    >>> import numpy as np
    >>> from polyax import lax
    >>> print(reduce_window(np.array([1., 3., 2., 5.]), -np.inf, lax.max, (2,), (2,)))
    [3. 5.]
    """
    xs, inits, tree = flat_operands("reduce_window", operand, init_value)
    shape = np.shape(xs[0])
    windows = _windows(shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    monoid = known_monoid(computation, xs[0], inits[0]) if len(xs) == 1 else None
    if monoid in OVER_WINDOWS:
        return tree_unflatten(tree, OVER_WINDOWS[monoid].bind_all(xs[0], **windows._asdict()))
    program = scalar_program("reduce_window", computation, xs, tree)
    return tree_unflatten(tree, reduce_window_p.bind(*xs, *inits, consts=(), jaxpr=program, **windows._asdict()))


def _windows(
    shape: tuple[int, ...], sizes: Any, strides: Any, padding: Any, base_dilation: Any, window_dilation: Any
) -> Windows:
    """The parameters as tuples, checked, with paddings for their names."""
    strides, base, inner = (repeated(given, len(shape)) for given in (strides, base_dilation, window_dilation))
    named = isinstance(padding, str)
    pads = ((0, 0),) * len(shape) if named else tuple((index(lo), index(hi)) for lo, hi in padding)
    windows = Windows(shape_tuple(sizes), strides, pads, base, inner)
    check_windows("reduce_window", shape, windows)
    if not named:
        return windows
    extents = list(map(dilated, windows.window_dimensions, inner))
    # As in JAX, a name stands for what it would be without ``base_dilation``.
    return windows._replace(padding=tuple(padtype_to_pads(shape, extents, strides, padding)))


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """How many windows there are in each dimension.

    >>> reduce_window_shape_tuple((5,), (2,), (2,), [(0, 1)])
    (3,)
    """
    shape = shape_tuple(operand_shape)
    windows = _windows(shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    return windows.shape(shape)


@def_rule(reduce_window_p, "abstract_eval")
def _abstract_eval(*avals: ShapedArray, jaxpr: ClosedJaxpr, consts: Any, **params: Any) -> list[ShapedArray]:
    windows = Windows(**params)
    check_windows("reduce_window", avals[0].shape, windows)
    return [ShapedArray(windows.shape(x.shape), x.dtype) for x in avals[: len(avals) // 2]]


def folded(args: Sequence[Any], *, jaxpr: ClosedJaxpr, consts: Any = (), **params: Any) -> Sequence[Any]:
    """What ``reduce_window`` computes, in primitives of arrays."""
    xs, inits = cut(args, len(args) // 2)
    combine, monoid = elementwise_on(jaxpr), monoid_of(jaxpr)
    if monoid in OVER_WINDOWS:
        return starting_with(combine, inits, OVER_WINDOWS[monoid].bind_all(xs[0], **params), None)
    return starting_with(combine, inits, *fold_windows(combine, xs, Windows(**params)))


LONGEST = 64
"""How many elements of a window are combined one after the other, as XLA does on CPUs; more in a tree."""


@def_rule(reduce_window_p, "decompose")
def _decompose(*args: Any, jaxpr: ClosedJaxpr, consts: Any = (), **params: Any) -> Sequence[Any]:
    if monoid_of(jaxpr) in OVER_WINDOWS or math.prod(params["window_dimensions"]) > LONGEST:
        return folded(args, jaxpr=jaxpr, **params)
    xs, inits = cut(args, len(args) // 2)
    return windows_in_turn(elementwise_on(jaxpr), xs, inits, Windows(**params))


def _in_slices(combine: Primitive, monoid: str) -> Callable[..., list[Any]]:
    """Windows of any size in a number of steps logarithmic in it."""

    def decompose(x: Any, **params: Any) -> list[Any]:
        (out,), found = fold_windows(lambda a, b: combine.bind_all(a[0], b[0]), [x], Windows(**params))
        return [out if found is None else select_n(found, full_like(out, identity(monoid, out.dtype)), out)]

    return decompose


for _monoid, _combine in (("add", add_p), ("max", max_p), ("min", min_p)):
    def_rule(OVER_WINDOWS[_monoid], "decompose")(_in_slices(_combine, _monoid))


@def_rule(reduce_window_p, "jvp")
def _jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    return jvp_flat(lambda *args: folded(args, **params), primals, tangents)


reduce_window_p.factors = lambda *avals, jaxpr, consts, **params: free_but(
    avals, len(avals) // 2, Windows(**params).wide
)
reduce_window_p.never("transpose", "no computation is known to be linear; derivatives are taken of the slices")


@def_rule(reduce_window_p, "batch")
def _batch(axis: Any, args: Any, dims: Any, *, jaxpr: ClosedJaxpr, consts: Any, **params: Any) -> Any:
    n = len(args) // 2
    if any(d is not None for d in dims[n:]):
        return batch_flat(lambda *xs: _decompose(*xs, jaxpr=jaxpr, **params), axis, args, dims)
    xs = [match_axis(axis, d, 0, x) for x, d in zip(args[:n], dims[:n], strict=True)]
    moved = Windows(**params).with_batch(0)._asdict()
    return reduce_window_p.bind(*xs, *args[n:], jaxpr=jaxpr, consts=consts, **moved), [0] * n


@def_rule(reduce_window_p, "sub_jaxprs")
def _sub_jaxprs(*, jaxpr: ClosedJaxpr, **_: Any) -> list[ClosedJaxpr]:
    return [jaxpr]
