"""``lax.reduce``: all elements along dimensions combined by any computation, in the order in which XLA does on CPUs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from polyax.control.flow.looping import scan
from polyax.control.folds.reducers import elementwise_on, flat_operands, known_monoid, monoid_of, scalar_program
from polyax.control.inner.lists import cut
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops import reduce as whole
from polyax.ops.basis import broadcast_in_dim, convert, full, match_axis, reduce_sum, reshape, select_n, transpose
from polyax.ops.slicing import pad
from polyax.ops.window_folds import Combine, fold_axes, starting_with
from polyax.trace.tree import tree_leaves, tree_unflatten
from polyax.transforms.jvp import jvp_flat
from polyax.transforms.vmap import batch_flat

OVER_AXES: dict[str, Callable[[Any, Sequence[int]], Any]] = {
    "add": reduce_sum,
    "mul": whole.reduce_prod,
    "max": whole.reduce_max,
    "min": whole.reduce_min,
    "and": whole.reduce_and,
    "or": whole.reduce_or,
    "xor": whole.reduce_xor,
}

reduce_p = Primitive("reduce", multiple_results=True)


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """The elements of ``operands`` along ``dimensions``, combined by ``computation`` with ``init_values``.

    Sums, products, extrema and logic of this module with their identities become ``reduce_sum`` and so on. Everything
    else begins with ``init_values`` and goes on in order, in windows of 32 elements where there are more. Derivatives,
    in both modes, and very many elements of several operands are taken of a tree.

    Args:
      operands: a pytree of arrays of one shape.
      init_values: scalars in the same structure.
      computation: a function of two such pytrees of scalars, associative where the order must not matter.
      dimensions: those that the results don't have any more.

    Raises:
      ValueError: structures or dimensions that don't fit.
      TypeError: the computation's results aren't like its arguments.

    >>> import numpy as np
    >>> print(reduce(np.array([[1., 2.], [3., 4.]]), 0.0, lambda a, b: a + b + a * b, (1,)))
    [ 5. 19.]
    """
    if out_sharding is not None:
        raise NotImplementedError("reduce: out_sharding isn't built yet")
    dims = tuple(map(index, dimensions))
    xs, inits, tree = flat_operands("reduce", operands, init_values)
    monoid = known_monoid(computation, xs[0], inits[0]) if len(xs) == 1 else None
    if monoid is not None:
        outs = [OVER_AXES[monoid](xs[0], dims)]
    else:
        program = scalar_program("reduce", computation, xs, tree)
        outs = reduce_p.bind(*xs, *inits, computation=computation, dimensions=dims, jaxpr=program)
    weak = [aval_of(x).weak_type and aval_of(i).weak_type for x, i in zip(xs, tree_leaves(init_values), strict=True)]
    return tree_unflatten(tree, [convert(y, aval_of(y).dtype, w) for y, w in zip(outs, weak, strict=True)])


@def_rule(reduce_p, "abstract_eval")
def _abstract_eval(*avals: ShapedArray, dimensions: tuple[int, ...], **_: Any) -> list[ShapedArray]:
    xs = avals[: len(avals) // 2]
    return [ShapedArray(whole.reduced_shape(x, dimensions), x.dtype) for x in xs]


def folded(args: Sequence[Any], *, jaxpr: ClosedJaxpr, dimensions: tuple[int, ...], **_: Any) -> Sequence[Any]:
    """What ``reduce`` computes, in primitives of arrays and loops over few rows."""
    xs, inits = cut(args, len(args) // 2)
    combine, shape = elementwise_on(jaxpr), np.shape(xs[0])
    if any(shape[d] == 0 for d in dimensions):
        rest = tuple(n for d, n in enumerate(shape) if d not in dimensions)
        return [broadcast_in_dim(i, rest, ()) for i in inits]
    monoid = monoid_of(jaxpr)
    if monoid is not None:
        return starting_with(combine, inits, [OVER_AXES[monoid](xs[0], dimensions)], None)
    if len(xs) > 1 and math.prod(shape[d] for d in dimensions) > LONGEST:
        return _in_tree(args, jaxpr=jaxpr, dimensions=dimensions)
    while len(xs) == 1 and any(np.shape(xs[0])[d] > WINDOW for d in dimensions):
        xs = _by_windows(combine, xs[0], inits, dimensions)
    return _in_turn(combine, [_rows(x, dimensions) for x in xs], inits, None)


WINDOW = 32
"""How many elements XLA combines one after the other on CPUs; longer dimensions are cut into windows of so many."""
LONGEST = 1024
"""How many elements of several operands are combined one after the other, and not in a tree."""


def _by_windows(combine: Combine, x: Any, inits: Sequence[Any], dims: tuple[int, ...]) -> list[Any]:
    """One value for each window along ``dims``, which begin and end with as many places without an element."""
    config, blocks, within = [(0, 0, 0)] * x.ndim, list[int](), list[int]()
    for d, n in enumerate(np.shape(x)):
        size = min(n, WINDOW) if d in dims else 1
        missing = -n % size
        config[d] = (missing // 2, missing - missing // 2, 0)
        within += [len(blocks) + 1] if d in dims else []
        blocks += [-(-n // size), size] if d in dims else [n]
    cut_up = lambda y, fill: _rows(reshape(pad(y, y.dtype.type(fill), config), tuple(blocks)), within)
    inside = cut_up(full(np.shape(x), True), False) if any(map(any, config)) else None
    return _in_turn(combine, [cut_up(x, 0)], inits, inside)


def _rows(x: Any, dims: Sequence[int]) -> Any:
    """The elements along ``dims`` as one first dimension."""
    rest = [d for d in range(x.ndim) if d not in dims]
    turned = transpose(x, (*sorted(dims), *rest))
    return reshape(turned, (math.prod(x.shape[d] for d in dims), *(x.shape[d] for d in rest)))


def _in_turn(combine: Combine, rows: Sequence[Any], inits: Sequence[Any], inside: Any) -> list[Any]:
    """Row after row combined with the initial values, where it is ``inside``."""
    start = [broadcast_in_dim(i, x.shape[1:], ()) for i, x in zip(inits, rows, strict=True)]

    def step(values: Any, item: Any) -> tuple[Any, None]:
        row, there = item
        found = list(combine(values, row))
        return found if there is None else [select_n(there, v, y) for v, y in zip(values, found, strict=True)], None

    return scan(step, start, (list(rows), inside))[0]


@def_rule(reduce_p, "decompose")
def _decompose(*args: Any, **params: Any) -> Sequence[Any]:
    return folded(args, **params)


def _in_tree(args: Sequence[Any], *, jaxpr: ClosedJaxpr, dimensions: tuple[int, ...], **_: Any) -> Sequence[Any]:
    """The same for functions that are associative, in a logarithmic number of steps."""
    xs, inits = cut(args, len(args) // 2)
    combine = elementwise_on(jaxpr)
    return starting_with(combine, inits, fold_axes(combine, xs, dimensions), None)


@def_rule(reduce_p, "jvp")
def _jvp(primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, dimensions: tuple[int, ...], **_: Any) -> Any:
    shape = np.shape(primals[0])
    plain = monoid_of(jaxpr) is not None or any(shape[d] == 0 for d in dimensions)
    fun = folded if plain else _in_tree  # as in JAX, whose derivatives are those of a tree
    return jvp_flat(lambda *args: fun(args, jaxpr=jaxpr, dimensions=dimensions), primals, tangents)


reduce_p.factors = lambda *avals, dimensions, **_: whole.reduction_factors(avals, len(avals) // 2, dimensions)
reduce_p.never("transpose", "no computation is known to be linear; derivatives are taken of the tree of slices")


@def_rule(reduce_p, "batch")
def _batch(axis: Any, args: Any, dims: Any, *, dimensions: tuple[int, ...], **params: Any) -> Any:
    n = len(args) // 2
    if any(d is not None for d in dims[n:]):
        return batch_flat(lambda *xs: folded(xs, dimensions=dimensions, **params), axis, args, dims)
    xs = [match_axis(axis, d, 0, x) for x, d in zip(args[:n], dims[:n], strict=True)]
    outs = reduce_p.bind(*xs, *args[n:], dimensions=tuple(d + 1 for d in dimensions), **params)
    return outs, [0] * n


@def_rule(reduce_p, "sub_jaxprs")
def _sub_jaxprs(*, jaxpr: ClosedJaxpr, **_: Any) -> list[ClosedJaxpr]:
    return [jaxpr]
