"""Shapes, slices, reductions, products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, prod
from typing import Any

import numpy as np

from polyax_onnx.rules.elementwise import log1p, maximum, minimum
from polyax_onnx.rules.table import RULES, rule
from polyax_onnx.writer import Model, NotInOnnx, Tensor

# --- shapes -----------------------------------------------------------------------------------------------------------


@rule("broadcast_in_dim")
def _broadcast(x: Tensor, *, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Tensor:
    sizes = [1] * len(shape)
    for dim, n in zip(broadcast_dimensions, x.shape, strict=True):
        sizes[dim] = n
    return x.reshape(sizes).expand(shape)


@rule("iota")
def _iota(model: Model, *, dtype: Any, shape: Sequence[int], dimension: int) -> Tensor:
    row = model.constant(np.arange(shape[dimension]), dtype)
    return row.reshape([n if i == dimension else 1 for i, n in enumerate(shape)]).expand(shape)


RULES["reshape"] = RULES["squeeze"] = lambda eqn, x: x.reshape(eqn.outvars[0].aval.shape)
rule("transpose")(lambda x, permutation: x.transpose(permutation))
rule("concatenate")(lambda x, *others, dimension: x.concat(others, dimension))


@rule("rev")
def _rev(x: Tensor, *, dimensions: Sequence[int]) -> Tensor:
    turned = [i in dimensions for i in range(len(x.shape))]
    starts = [n - 1 if t else 0 for n, t in zip(x.shape, turned)]
    return x.slice(starts, [-1 if t else n for n, t in zip(x.shape, turned)], [-1 if t else 1 for t in turned])


@rule("slice")
def _slice(x: Tensor, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Any) -> Tensor:
    return x.slice(start_indices, limit_indices, strides or [1] * len(x.shape)) if x.shape else x


@rule("split")
def _split(x: Tensor, *, sizes: Sequence[int], axis: int) -> list[Tensor]:
    ends = np.cumsum(sizes)
    return [part(x, axis, int(end) - n, int(end)) for n, end in zip(sizes, ends)]


def part(x: Tensor, axis: int, start: int, limit: int) -> Tensor:
    """From ``start`` to ``limit`` along one axis."""
    starts = [start if i == axis else 0 for i in range(len(x.shape))]
    return x.slice(starts, [limit if i == axis else n for i, n in enumerate(x.shape)], [1] * len(x.shape))


@rule("pad")
def pad(x: Tensor, value: Tensor, *, padding_config: Sequence[tuple[int, int, int]]) -> Tensor:
    """First what stands between elements, then what is cut off, then what stands around."""
    if x.dtype.name in ("int16", "uint16"):
        return pad(x.cast("int32"), value.cast("int32"), padding_config=padding_config).cast(x.dtype)
    for axis, (*_, inner) in enumerate(padding_config):
        if inner and x.shape[axis] > 1:
            x = _spread(x, value, axis, inner)
    cut = [(max(-lo, 0), n - max(-hi, 0)) for n, (lo, hi, _) in zip(x.shape, padding_config, strict=True)]
    if cut != [(0, n) for n in x.shape]:
        x = x.slice([lo for lo, _ in cut], [max(hi, lo) for lo, hi in cut], [1] * len(cut))
    return _around(x, value, [(max(lo, 0), max(hi, 0)) for lo, hi, _ in padding_config])


def _around(x: Tensor, value: Tensor, widths: Sequence[tuple[int, int]]) -> Tensor:
    if not any(map(any, widths)):
        return x
    pads = x.model.ints(*(lo for lo, _ in widths), *(hi for _, hi in widths))
    return x.op("Pad", pads, value, shape=[n + lo + hi for n, (lo, hi) in zip(x.shape, widths, strict=True)])


def _spread(x: Tensor, value: Tensor, axis: int, inner: int) -> Tensor:
    shape = [*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]]
    wide = _around(x.reshape(shape), value, [(0, inner if i == axis + 1 else 0) for i in range(len(shape))])
    total = x.shape[axis] * (inner + 1)
    return part(wide.reshape([*x.shape[:axis], total, *x.shape[axis + 1 :]]), axis, 0, total - inner)


# --- reductions -------------------------------------------------------------------------------------------------------

_WIDER = {"int8": "int32", "int16": "int32", "uint8": "int32", "uint16": "int32", "uint32": "int64", "uint64": "int64"}


def sum_type(x: Tensor) -> str:
    """In what sums are made: integers wrap alike in what is wider."""
    return "float32" if x.dtype == "float16" else _WIDER.get(x.dtype.name, x.dtype.name)


for _name, _op, _start in (("reduce_sum", "ReduceSum", 0), ("reduce_prod", "ReduceProd", 1)):

    @rule(_name)
    def _fold(x: Tensor, *, axes: Sequence[int], op: str = _op, start: int = _start, **_: Any) -> Tensor:
        if 0 in x.shape:
            return x.like(start).expand([n for i, n in enumerate(x.shape) if i not in axes])
        return x.cast(sum_type(x)).reduce(op, axes).cast(x.dtype)


def lowest(dtype: Any, highest: bool = False) -> Any:
    if dtype.kind == "f":
        return np.inf if highest else -np.inf
    info = np.iinfo(dtype)
    return info.max if highest else info.min


for _name, _op in (("reduce_max", "ReduceMax"), ("reduce_min", "ReduceMin")):

    @rule(_name)
    def _extremum(x: Tensor, *, axes: Sequence[int], op: str = _op, **_: Any) -> Tensor:
        """NaN if any is."""
        if 0 in x.shape:
            start = x.like(lowest(x.dtype, op == "ReduceMin"))
            return start.expand([n for i, n in enumerate(x.shape) if i not in axes])
        wide = {"int16": "int32", "uint16": "int32", "uint32": "int64", "float16": "float32"}.get(x.dtype.name)
        found = x.cast(wide or x.dtype).reduce(op, axes).cast(x.dtype)
        return any_of(x.nan(), axes).where(np.nan, found) if x.is_float else found


def any_of(x: Tensor, axes: Sequence[int]) -> Tensor:
    return x.reduce("ReduceMax", axes)


for _name, _op in (("reduce_and", "ReduceMin"), ("reduce_or", "ReduceMax")):

    @rule(_name)
    def _logical(x: Tensor, *, axes: Sequence[int], op: str = _op, **_: Any) -> Tensor:
        if not x.is_bool:
            raise NotInOnnx("ONNX reduces truth values, not bits")
        if 0 in x.shape:
            return x.like(op == "ReduceMin").expand([n for i, n in enumerate(x.shape) if i not in axes])
        return x.reduce(op, axes)


for _name, _op in (("argmax", "ArgMax"), ("argmin", "ArgMin")):

    @rule(_name)
    def _where(x: Tensor, *, axes: Sequence[int], index_dtype: Any, op: str = _op) -> Tensor:
        """The first one; NaNs before all others."""
        wide = {"bool": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "float16": "float32"}
        x, shape = x.cast(wide.get(x.dtype.name, x.dtype)), [n for i, n in enumerate(x.shape) if i not in axes]

        def find(x: Tensor, op: str) -> Tensor:
            return x.op(op, dtype="int64", shape=shape, axis=axes[0], keepdims=0)

        found = find(x, op)
        if x.is_float:
            found = any_of(x.nan(), axes).where(find(x.nan().cast("int32"), "ArgMax"), found)
        return found.cast(index_dtype)


@rule("cumsum")
def _cumsum(x: Tensor, *, axis: int, reverse: bool) -> Tensor:
    wide = x.cast(sum_type(x))
    place = x.model.constant(axis, np.int64)
    return wide.op("CumSum", place, shape=x.shape, reverse=int(reverse)).cast(x.dtype)


def _log_of_sum(x: Tensor, y: Tensor) -> Tensor:
    """log(exp(x) + exp(y)); equal ones may be infinite."""
    top, low = maximum(x, y), minimum(x, y)
    return (x == y).where(x + log(2), top + log1p((low - top).op("Exp")))


_STEPS = {"cumprod": lambda x, y: x * y, "cummax": maximum, "cummin": minimum, "cumlogsumexp": _log_of_sum}
for _name, _fun in _STEPS.items():

    @rule(_name)
    def _cumulative(x: Tensor, *, axis: int, reverse: bool, fun: Any = _fun) -> Tensor:
        """By doubling: after each step an element holds what came of twice as many before it."""
        step, size = 1, x.shape[axis]
        while step < size:
            near, far = (size - step, size), (0, size - step)
            if reverse:
                joined = fun(part(x, axis, *far), part(x, axis, step, size))
                x = joined.concat([part(x, axis, *near)], axis)
            else:
                joined = fun(part(x, axis, step, size), part(x, axis, *far))
                x = part(x, axis, 0, step).concat([joined], axis)
            step *= 2
        return x


# --- products ---------------------------------------------------------------------------------------------------------


@rule("dot_general")
def _dot(x: Tensor, y: Tensor, *, dimension_numbers: Any, preferred_element_type: Any, **_: Any) -> Tensor:
    """One product of matrices for each element of a batch."""
    (lc, rc), (lb, rb) = dimension_numbers
    dtype = x.dtype if preferred_element_type is None else np.dtype(preferred_element_type)
    if dtype == np.bool_:
        numbers = {"dimension_numbers": dimension_numbers, "preferred_element_type": np.int32}
        return ~(_dot(x.cast("int32"), y.cast("int32"), **numbers) == 0)
    left, rows = _as_matrices(x, lb, lc, dtype)
    right, columns = _as_matrices(y, rb, rc, dtype)
    shape = [*(x.shape[i] for i in lb), *rows, *columns]
    if 0 in x.shape or 0 in y.shape:
        return x.model.constant(0, dtype).expand(shape)
    product = left.op("MatMul", right.transpose([0, 2, 1]), shape=[left.shape[0], left.shape[1], right.shape[1]])
    return product.cast(dtype).reshape(shape)


def _as_matrices(x: Tensor, batch: Sequence[int], contracted: Sequence[int], dtype: Any) -> tuple[Tensor, list[int]]:
    rest = [i for i in range(len(x.shape)) if i not in batch and i not in contracted]
    sizes = [prod(x.shape[i] for i in dims) for dims in (batch, rest, contracted)]
    x = x.cast(dtype)
    return x.cast(sum_type(x)).transpose([*batch, *rest, *contracted]).reshape(sizes), [x.shape[i] for i in rest]


@rule("conv_general_dilated")
def _conv(x: Tensor, w: Tensor, **p: Any) -> Tensor:
    """In ONNX's layout; what stands between elements or around them is padded before."""
    if p["batch_group_count"] != 1 or 0 in x.shape or 0 in w.shape:
        raise NotInOnnx("Conv has no groups of batches, and nothing to do with empty arrays")
    d, n = p["dimension_numbers"], len(p["window_strides"])
    dtype = np.dtype(p["preferred_element_type"] or x.dtype)
    if dtype.kind != "f" or dtype == "float64":
        raise NotInOnnx(f"Conv doesn't compute in {dtype}")
    x, w = (t.cast("float32").transpose(order) for t, order in ((x, d.lhs_spec), (w, d.rhs_spec)))
    around = [(lo, hi, step - 1) for (lo, hi), step in zip(p["padding"], p["lhs_dilation"], strict=True)]
    x = pad(x, x.like(0), padding_config=[(0, 0, 0), (0, 0, 0), *around])
    strides, steps = list(p["window_strides"]), list(p["rhs_dilation"])
    space = [
        (size - (window - 1) * step - 1) // stride + 1
        for size, window, step, stride in zip(x.shape[2:], w.shape[2:], steps, strides, strict=True)
    ]
    if any(size <= 0 for size in space):
        raise NotInOnnx("Conv has nothing to do with windows larger than what they see")
    made = x.op(
        "Conv", w, shape=[x.shape[0], w.shape[0], *space], strides=strides, dilations=steps, pads=[0] * 2 * n,
        group=p["feature_group_count"], kernel_shape=list(w.shape[2:]),
    )  # fmt: skip
    return made.cast(dtype).transpose([int(i) for i in np.argsort(d.out_spec)])
