"""Sums still to be made inside ``shard_map``: from what varies to one, from one to its value, and the other way round.

Each is the transpose of another: what is the same everywhere, with cotangents that are sums (``{R:x}``), stands against
sums (``{U:x}``). Types alone tell them from sums, gathering, and doing nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive, ambient
from polyax.meshes.sums import RULES, Both
from polyax.ops.collective import BY_HAND, Names, axis_index, psum_p, unreduced_psum_p
from polyax.ops.define import linear
from polyax.ops.index import dynamic_index_in_dim, dynamic_slice_in_dim
from polyax.ops.parts import (
    all_gather_invariant_p,
    all_gather_p,
    all_gather_reduced_p,
    reduce_scatter_p,
    unreduced_reduce_scatter_p,
)
from polyax.trace.varying import reduced_vary_cast_p, state_of

__all__ = [
    "all_gather_reduced_p", "preduced_p", "reduced_vary_cast_p", "unreduced_psum_p", "unreduced_reduce_scatter_p",
    "vary_unreduced_cast_p",
]  # fmt: skip

preduced_p = Primitive("preduced", multiple_results=True)
vary_unreduced_cast_p = Primitive("vary_unreduced_cast_p", multiple_results=True)


def _axes(axes: Any = None, axis_name: Any = None, **_: Any) -> Names:
    return axes if axis_name is None else axis_name


def _define(p: Primitive, before: str, after: str) -> None:
    """A value that is ``before`` along the axes is ``after`` afterwards."""

    def varies(vmas: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        axes = ambient.varying.intersection(_axes(**params))
        taken = vmas[0] - axes if before == "varying" else vmas[0]
        return vmas, [taken | axes if after == "varying" else taken]

    def sums(ins: Sequence[ShapedArray], **params: Any) -> Both:
        axes = _axes(**params)
        state = state_of(ins[0], axes, p.name)
        if state != before:
            raise ValueError(
                f"{p} only accepts inputs that are {before} along {axes}. Got {ins[0].str_short(True)}: it is {state}"
            )
        own = dict(zip(("unreduced", "reduced"), ins[0].sums, strict=True))
        own = {name: found.difference(axes) for name, found in own.items()}
        if after in own:
            own[after] = own[after].union(axes)
        return own["unreduced"], own["reduced"]

    p.varies = varies
    p.axes = _axes
    RULES[p.name] = sums
    p.never("factors", BY_HAND)


_define(preduced_p, "invarying", "reduced")
_define(vary_unreduced_cast_p, "varying", "unreduced")
_define(reduced_vary_cast_p, "reduced", "varying")
_define(unreduced_psum_p, "unreduced", "invarying")
_define(unreduced_reduce_scatter_p, "unreduced", "varying")
_define(all_gather_reduced_p, "varying", "reduced")
_define(all_gather_invariant_p, "varying", "invarying")

for _p in (preduced_p, vary_unreduced_cast_p, reduced_vary_cast_p):
    _p.abstract_eval = lambda x, **_: [x]
    _p.decompose = lambda x, **_: [x]
    _p.batch = lambda axis, args, dims, p=_p, **params: (p.bind_all(*args, **params), list(dims))
unreduced_psum_p.abstract_eval = lambda x, **_: [x]
unreduced_psum_p.decompose = lambda x, axes: psum_p.bind_all(x, axes=axes, axis_index_groups=None)
unreduced_psum_p.batch = lambda axis, args, dims, **params: (unreduced_psum_p.bind_all(*args, **params), list(dims))


def _like(p: Primitive, plain: Primitive, dim: str) -> None:
    """``p`` is what ``plain`` is, for a value of another type; ``dim`` is the parameter that names a dimension."""

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        (d,), n = dims, params[dim]
        outs = p.bind_all(*args, **{**params, dim: n + (d <= n)})
        return outs, [d if params["tiled"] or d <= n else d + (1 if plain is all_gather_p else -1)]

    p.abstract_eval = lambda x, **params: plain.rule("abstract_eval")(x, **params)
    p.decompose = lambda x, **params: plain.bind_all(x, axis_index_groups=None, **params)
    p.batch = batch


_like(all_gather_reduced_p, all_gather_p, "all_gather_dimension")
_like(all_gather_invariant_p, all_gather_p, "all_gather_dimension")
_like(unreduced_reduce_scatter_p, reduce_scatter_p, "scatter_dimension")

linear(preduced_p, lambda ct, x, axes: unreduced_psum_p.bind1(ct, axes=axes), preduced_p.batch)
linear(unreduced_psum_p, lambda ct, x, axes: preduced_p.bind1(ct, axes=axes), unreduced_psum_p.batch)
linear(vary_unreduced_cast_p, lambda ct, x, axes: reduced_vary_cast_p.bind1(ct, axes=axes), vary_unreduced_cast_p.batch)
linear(reduced_vary_cast_p, lambda ct, x, axes: vary_unreduced_cast_p.bind1(ct, axes=axes), reduced_vary_cast_p.batch)
linear(
    all_gather_reduced_p,
    lambda ct, x, all_gather_dimension, **params: unreduced_reduce_scatter_p.bind1(
        ct, scatter_dimension=all_gather_dimension, **params
    ),
    all_gather_reduced_p.batch,
)


def _own_part(ct: Any, x: ShapedArray, axis_name: Any, all_gather_dimension: int, tiled: bool, **_: Any) -> Any:
    d, n = all_gather_dimension, axis_index(axis_name)
    if not tiled:
        return dynamic_index_in_dim(ct, n, d, keepdims=False)
    return dynamic_slice_in_dim(ct, n * np.int32(x.shape[d]), x.shape[d], d)


linear(all_gather_invariant_p, _own_part, all_gather_invariant_p.batch)
linear(
    unreduced_reduce_scatter_p,
    lambda ct, x, scatter_dimension, **params: all_gather_reduced_p.bind1(
        ct, all_gather_dimension=scatter_dimension, **params
    ),
    unreduced_reduce_scatter_p.batch,
)
