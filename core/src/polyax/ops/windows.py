"""Sums and extrema of windows of an array (pooling), and what their derivatives are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyax.ir.aval import ShapedArray
from polyax.ir.primitive import Primitive, def_rule
from polyax.meshes.factors import free_but
from polyax.ops.basis import match_axis
from polyax.ops.compare import ge_p, le_p
from polyax.ops.conv_shapes import Sizes, padding_for_lhs
from polyax.ops.define import NUMBER, ORDERED, Accepts, check_dtype, linear
from polyax.ops.slicing import pad
from polyax.ops.window_folds import Windows
from polyax.ops.window_selection import gather_selected, plain_windows, scatter_selected
from polyax.trace.symbolic import Zero

__all__ = [
    "reduce_window_max_p", "reduce_window_min_p", "reduce_window_sum_p", "select_and_gather_add_p",
    "select_and_scatter_add_p",
]  # fmt: skip


def check_windows(name: str, shape: Sizes, windows: Windows) -> None:
    """Raises JAX's ``TypeError`` unless there is one positive entry of each kind per dimension."""
    for kind, given in zip(Windows._fields, windows, strict=True):
        if len(given) != len(shape):
            raise TypeError(
                f"{name} got the wrong number of {kind} for operand: got operand shape {shape} with {kind} {given}."
            )
        if kind != "padding" and any(n < 1 for n in given):  # type: ignore[operator]
            raise TypeError(f"{name} {kind} must have every element be strictly positive, got {given}.")


def _reduction(name: str, accepts: Accepts) -> Primitive:
    p = Primitive(name)

    def abstract_eval(x: ShapedArray, **params: Any) -> list[ShapedArray]:
        check_dtype(name, x, accepts)
        windows = Windows(**params)
        check_windows(name, x.shape, windows)
        return [ShapedArray(windows.shape(x.shape), x.dtype, x.weak_type)]

    def batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
        return p.bind_all(args[0], **Windows(**params).with_batch(dims[0])._asdict()), dims

    p.abstract_eval, p.batch = abstract_eval, batch
    p.factors = lambda x, **params: free_but([x], 1, Windows(**params).wide)
    return p


reduce_window_sum_p = _reduction("reduce_window_sum", NUMBER)
reduce_window_max_p = _reduction("reduce_window_max", ORDERED)
reduce_window_min_p = _reduction("reduce_window_min", ORDERED)


def _sum_transpose(ct: Any, x: ShapedArray, **params: Any) -> Any:
    """The windows that an element is in form a window of the cotangent, spread by the strides."""
    size, strides, _, base, dilation = windows = Windows(**params)
    pads = padding_for_lhs(x.shape, *windows, windows.shape(x.shape))
    spread = pad(ct, ct.dtype.type(0), [(lo, hi, s - 1) for (lo, hi), s in zip(pads, strides, strict=True)])
    ones = (1,) * x.ndim
    inner = Windows(size, base, ((0, 0),) * x.ndim, ones, dilation)
    return reduce_window_sum_p.bind1(spread, **inner._asdict())


linear(reduce_window_sum_p, _sum_transpose)


def _extremum_jvp(p: Primitive, select: Primitive) -> None:
    def jvp(primals: Any, tangents: Any, **params: Any) -> Any:
        """The tangent of the first element that attains the extremum."""
        (x,), (t,) = primals, tangents
        y = p.bind1(x, **params)
        if type(t) is Zero:
            return [y], [Zero.of(y)]
        return [y], [select_and_gather_add_p.bind1(t, x, select_prim=select, **params)]

    p.jvp = jvp
    p.never("transpose", f"{p.name} is not linear")


_extremum_jvp(reduce_window_max_p, ge_p)
_extremum_jvp(reduce_window_min_p, le_p)

# --- the element that is selected in each window --------------------------------------------------------------------

select_and_gather_add_p = Primitive("select_and_gather_add")
"""``(tangents, operand)``: from each window the tangent of the operand's element that ``select_prim`` prefers."""
select_and_scatter_add_p = Primitive("select_and_scatter_add")
"""``(source, operand)``: adds each element of ``source`` to the preferred place of its window of ``operand``."""


@def_rule(select_and_gather_add_p, "abstract_eval")
def _gather_abstract(t: ShapedArray, x: ShapedArray, *, select_prim: Primitive, **params: Any) -> list[ShapedArray]:
    _check_equal("select_and_gather_add", ("tangents", "operand"), t.shape, x.shape)
    windows = Windows(**params)
    check_windows("select_and_gather_add", x.shape, windows)
    return [ShapedArray(windows.shape(x.shape), t.dtype, t.weak_type)]


@def_rule(select_and_scatter_add_p, "abstract_eval")
def _scatter_abstract(source: ShapedArray, x: ShapedArray, *, select_prim: Any, **params: Any) -> list[ShapedArray]:
    windows = plain_windows(**params)
    check_windows("select_and_scatter_add", x.shape, windows)
    _check_equal("select_and_scatter_add", ("source", "windows"), source.shape, windows.shape(x.shape))
    return [ShapedArray(x.shape, source.dtype, source.weak_type)]


def _check_equal(name: str, what: tuple[str, str], a: Sizes, b: Sizes) -> None:
    if a != b:
        raise TypeError(f"{name} {what[0]} and {what[1]} shapes must match, got {a} and {b}.")


def _linear_in_first(p: Primitive, transpose: Callable[..., Any]) -> None:
    """Derivatives and batching of a primitive that is linear in its first operand, and flat in its second."""

    def batch(axis: Any, args: Any, dims: Any, *, select_prim: Any, **params: Any) -> Any:
        operands = [match_axis(axis, d, 0, x) for x, d in zip(args, dims, strict=True)]
        ones = (1,) * len(params["padding"])
        whole: dict[str, Any] = {"base_dilation": ones, "window_dilation": ones, **params}
        moved = Windows(**whole).with_batch(0)._asdict()
        return p.bind_all(*operands, select_prim=select_prim, **{k: moved[k] for k in params}), [0]

    linear(p, transpose, batch)


def_rule(select_and_gather_add_p, "decompose")(
    lambda x, operand, *, select_prim, **params: [gather_selected(x, operand, select_prim, Windows(**params))]
)
def_rule(select_and_scatter_add_p, "decompose")(
    lambda x, operand, *, select_prim, **params: [scatter_selected(x, operand, select_prim, plain_windows(**params))]
)


select_and_gather_add_p.factors = lambda *avals, select_prim, **params: free_but(avals, 1, Windows(**params).wide)
select_and_scatter_add_p.factors = lambda *avals, select_prim, **params: free_but(
    avals, 1, plain_windows(**params).wide
)


def _scatter_transpose(ct: Any, source: ShapedArray, x: Any, *, select_prim: Primitive, **params: Any) -> Any:
    windows = plain_windows(**params)
    return select_and_gather_add_p.bind1(ct, x, select_prim=select_prim, **windows._asdict())


def _gather_transpose(ct: Any, t: ShapedArray, x: Any, *, select_prim: Primitive, **params: Any) -> Any:
    windows = Windows(**params)
    if windows.base_dilation == windows.window_dilation == (1,) * len(windows.padding):
        size, strides, padding, *_ = windows
        kept = {"window_dimensions": size, "window_strides": strides, "padding": padding}
        return select_and_scatter_add_p.bind1(ct, x, select_prim=select_prim, **kept)
    return scatter_selected(ct, x, select_prim, windows)


_linear_in_first(select_and_gather_add_p, _gather_transpose)
_linear_in_first(select_and_scatter_add_p, _scatter_transpose)
