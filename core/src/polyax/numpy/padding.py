"""Elements added at the ends of dimensions: constants, copies, ramps, statistics, or what a function makes of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.ir import dtypes
from polyax.ir.dims import is_symbolic_dim, max_dim
from polyax.ir.errors import InconclusiveDimensionOperation
from polyax.lax import lenient as lax
from polyax.numpy import reductions, statistics
from polyax.numpy.arrays import asarray
from polyax.numpy.broadcast import broadcast_to
from polyax.numpy.extras import apply_along_axis
from polyax.numpy.indexing import take
from polyax.numpy.promotion import canonicalize_axis, convert, ensure_array, refuse_traced, shape_of, unwrap
from polyax.trace.tree import tree_leaves

__all__ = ["pad"]


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """``array`` with elements added at both ends of its dimensions.

    Args:
      pad_width: one number, (before, after), or one such pair for each dimension.
      mode: 'constant' (``constant_values``, zero by default), 'edge', 'wrap', 'reflect' or 'symmetric' (odd ones, with
        ``reflect_type='odd'``, are turned around the edge), 'linear_ramp' (``end_values``), 'maximum', 'minimum',
        'mean' or 'median' (``stat_length``: of how many elements), 'empty', or a function of a line, the widths of its
        ends, the axis and a dict of the other arguments.

    Raises:
      NotImplementedError: an unknown mode.

    >>> import polyax.numpy as jnp
    >>> jnp.pad(jnp.array([1, 2]), (1, 2), mode='edge').tolist()
    [1, 1, 2, 2, 2]
    """
    array = ensure_array("pad", array)
    for width in tree_leaves(pad_width):
        refuse_traced(width, "pad_width argument of jnp.pad")
    widths = _pairs(pad_width, array.ndim)
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError("index can't contain negative values")
    if callable(mode):
        return _pad_by(mode, array, widths, kwargs)
    if mode not in _OPTIONS:
        raise NotImplementedError(f"Unimplemented padding mode '{mode}' for np.pad.")
    unknown = set(kwargs) - {_OPTIONS[mode]}
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    option = kwargs.get(_OPTIONS[mode])
    if mode in ("constant", "empty"):
        return _pad_constant(array, widths, 0 if option is None else option)
    for axis, width in enumerate(widths):
        if any(width):
            array = _extended(array, axis, width, mode, option)
    return array


_OPTIONS = {
    "constant": "constant_values", "edge": "", "empty": "", "linear_ramp": "end_values", "maximum": "stat_length",
    "mean": "stat_length", "median": "stat_length", "minimum": "stat_length", "reflect": "reflect_type",
    "symmetric": "reflect_type", "wrap": "",
}  # fmt: skip


def _extended(array: Any, axis: int, width: tuple[int, int], mode: str, option: Any) -> Any:
    if mode == "linear_ramp":
        return _linear_ramp(array, axis, *width, 0 if option is None else option)
    if mode in _STATISTICS:
        lengths = None if option is None else _for_each_end("stat_length", option, array.ndim)[axis].tolist()
        return _statistic_ends(array, axis, width, _STATISTICS[mode], lengths)
    if option not in (None, "even", "odd"):
        raise ValueError("reflect_type must be 'even' or 'odd'")
    if option == "odd" and array.shape[axis] > 1:
        return _turned(array, axis, width, mode)
    if any(map(is_symbolic_dim, (array.shape[axis], *width))):
        return lax.concatenate(_symbolic_ends(array, axis, width, mode), axis)
    return _taken(array, _source_indices(mode, array.shape[axis], *width), axis)


def _symbolic_ends(a: Any, axis: int, width: tuple[Any, Any], mode: str) -> list[Any]:
    """``a`` between copies of its ends, of sizes that are symbolic.

    Raises:
      ValueError: whether the copies are all of one reflection depends on the variables.
      InconclusiveDimensionOperation: ... of one repetition ...
    """
    (low, high), size = width, a.shape[axis]
    part = functools.partial(lax.slice_in_dim, a, axis=axis)
    if mode == "edge":
        ends = ((part(0, 1), low), (part(size - 1, size), high))
        before, after = (
            lax.broadcast_in_dim(end, (*a.shape[:axis], n, *a.shape[axis + 1 :]), range(a.ndim)) for end, n in ends
        )
        return [before, a, after]
    if mode == "wrap":
        if max_dim(low, high) > size:
            raise NotImplementedError(f"jnp.pad: a symbolic axis of size {size} is wrapped once, not for {width}")
        return [part(size - low, size), a, part(0, high)]
    inset = 1 if mode == "reflect" else 0
    for side, n in zip(("left", "right"), width, strict=True):
        _check_reflection(size, n, inset, side)
    before, after = part(inset, low + inset), part(size - high - inset, size - inset)
    return [lax.rev(before, (axis,)), a, lax.rev(after, (axis,))]


def _check_reflection(size: Any, width: Any, inset: int, side: str) -> None:
    try:
        if size > 1 and size >= width + inset:
            return
        reason = "it isn't"
    except InconclusiveDimensionOperation as e:
        reason = str(e)
    raise ValueError(
        "Shape polymorphism is supported for jnp.pad with 'reflect' or 'symmetric' padding mode only when it is "
        f"possible to determine at lowering time that the axis size (= {size}) is larger than 1 and larger or "
        f"equal than the padding length (= {width}). Error while handling {side} padding on axis: {reason}"
    )


RUNS = 8
"""Pieces that are joined; of more, as of a reflection of a reflection, elements are gathered."""


def _taken(array: Any, places: np.ndarray, axis: int) -> Any:
    """What is at ``places`` along ``axis``, as few pieces whose elements are neighbours, or equal."""
    runs = _runs(places.tolist())
    if len(runs) > RUNS:
        return take(array, places, axis, mode="clip")
    return lax.concatenate([_piece(array, run, axis) for run in runs], axis)


def _runs(places: list[int]) -> list[list[int]]:
    """Cut where the step from one to the next, -1, 0 or 1, is another one."""
    runs: list[list[int]] = []
    for place in places:
        run = runs[-1] if runs else []
        fits = run and abs(place - run[-1]) <= 1 and (len(run) == 1 or place - run[-1] == run[1] - run[0])
        if fits:
            run.append(place)
        else:
            runs.append([place])
    return runs


def _piece(array: Any, run: list[int], axis: int) -> Any:
    start, end = min(run[0], run[-1]), max(run[0], run[-1]) + 1
    piece = lax.slice_in_dim(array, start, end, axis=axis)
    if run[-1] < run[0]:
        return lax.rev(piece, (axis,))
    shape = (*array.shape[:axis], len(run), *array.shape[axis + 1 :])
    return piece if end - start == len(run) else lax.broadcast_in_dim(piece, shape, range(array.ndim))


def _pairs(width: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(width, dict):
        full = dict.fromkeys(range(ndim), (0, 0)) | {canonicalize_axis(k, ndim): v for k, v in width.items()}
        width = [full[i] if not isinstance(full[i], int) else (full[i], full[i]) for i in range(ndim)]
    pairs = _for_each_end("pad_width", width, ndim)
    if pairs.dtype.kind not in "iu" and not all(is_symbolic_dim(w) or isinstance(w, int) for w in pairs.flat):
        raise TypeError(f"`pad_width` must be of integral type, got {width}")
    return [tuple(p) for p in pairs.tolist()]


def _for_each_end(name: str, given: Any, ndim: int) -> np.ndarray:
    """Of one number, (before, after), or such a pair for each dimension: the latter."""
    try:
        values = np.asarray(given, object if is_symbolic_dim(given) else None)
    except ValueError as e:
        raise TypeError(f"`{name}` entries must be the same shape: {given}") from e
    if values.shape not in ((ndim, 2), (1, 2), (2,), (1,), ()):
        raise ValueError(
            f"jnp.pad: {name} with nd={ndim} has unsupported shape {values.shape}. "
            f"Valid shapes are ({ndim}, 2), (1, 2), (2,), (1,), or ()."
        )
    return np.broadcast_to(values, (ndim, 2))


def _pad_constant(array: Any, widths: list[tuple[int, int]], values: Any) -> Any:
    if shape_of(values) == ():
        fill = convert(unwrap(values), array.dtype, array.weak_type)
        return lax.pad(array, fill, [(low, high, 0) for low, high in widths])
    given = shape_of(values := asarray(values))
    if given not in ((array.ndim, 2), (array.ndim, 1), (1, 2), (1, 1), (2,), (1,)):
        raise ValueError(
            f"jnp.pad: constant_values has unsupported shape {given}. If the shape is 1D or 2D, the last dimension "
            "must be of size 1 or 2."
        )
    values = broadcast_to(convert(values, array.dtype, array.weak_type), (array.ndim, 2))
    for axis, (low, high) in enumerate(widths):
        for side, width in ((0, (low, 0, 0)), (1, (0, high, 0))):
            config = [(0, 0, 0)] * array.ndim
            config[axis] = width
            array = lax.pad(array, values[axis, side], config)
    return array


def _source_indices(kind: str, n: int, before: int, after: int) -> np.ndarray:
    """For each position of the padded axis the one that it copies, as NumPy's modes define."""
    if n == 0:
        raise ValueError(f"can't extend empty axis using modes other than 'constant' or 'empty', got mode '{kind}'")
    return np.pad(np.arange(n, dtype=np.int32), (before, after), mode=kind)  # type: ignore[call-overload]


def _turned(a: Any, axis: int, width: tuple[int, int], mode: str) -> Any:
    """Reflected along ``axis``, and around the values at the edges: as much as there is at a time."""
    twice = mode == "symmetric"  # the edge itself is repeated
    for side, missing in enumerate(width):
        while missing > 0:
            size = a.shape[axis]
            count = min(missing, size - 1 + twice)
            start = (1 - twice) if side == 0 else size - count - 1 + twice
            edge = lax.slice_in_dim(a, *((0, 1) if side == 0 else (size - 1, size)), axis=axis)
            inner = lax.rev(lax.slice_in_dim(a, start, start + count, axis=axis), (axis,))
            part = lax.sub(lax.add(edge, edge), inner)
            a = lax.concatenate([part, a] if side == 0 else [a, part], axis)
            missing -= count
    return a


def _statistic_ends(
    a: Any, axis: int, width: tuple[int, int], statistic: Callable[..., Any], lengths: list[int] | None
) -> Any:
    """Repetitions of the statistic of the first and of the last elements, by default of all."""
    size = a.shape[axis]
    first, last = (min(n, size) for n in lengths or (size, size))
    if not first or not last:
        raise ValueError("stat_length of 0 yields no value for padding")
    ends = []
    for count, (start, stop) in zip(width, ((0, first), (size - last, size)), strict=True):
        value = statistic(lax.slice_in_dim(a, start, stop, axis=axis), axis=axis, keepdims=True)
        if a.dtype.kind in "iu" and value.dtype.kind == "f":
            value = lax.round(value, lax.RoundingMethod.TO_NEAREST_EVEN)
        shape = (*a.shape[:axis], count, *a.shape[axis + 1 :])
        ends.append(lax.broadcast_in_dim(convert(value, a.dtype), shape, range(a.ndim)))
    return lax.concatenate([ends[0], a, ends[1]], axis)


_STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": reductions.max,
    "mean": reductions.mean,
    "median": statistics.median,
    "minimum": reductions.min,
}


def _pad_by(function: Callable[..., Any], array: Any, widths: list[tuple[int, int]], kwargs: dict[str, Any]) -> Any:
    """Each line with zeros at its ends is given to ``function``, one dimension after another."""
    array = _pad_constant(array, widths, 0)
    for axis in range(array.ndim):
        array = apply_along_axis(function, axis, array, widths[axis], axis, kwargs)
    return array


def _linear_ramp(a: Any, axis: int, before: int, after: int, end: Any) -> Any:
    """Straight lines from the end values to the edges; integers are the floors of what lies on them."""
    inexact = dtypes.is_inexact(a.dtype)
    kind = dtypes.wider(a.dtype, np.float32) if inexact else dtypes.canonicalize(np.float64)

    def ramp(width: int, edge: Any, value: Any) -> Any:
        steps = lax.broadcasted_iota(kind, (*a.shape[:axis], width, *a.shape[axis + 1 :]), axis)
        start = kind.type(value)
        values = lax.add(lax.mul(lax.div(steps, kind.type(max(width, 1))), lax.sub(convert(edge, kind), start)), start)
        return convert(values if inexact else lax.floor(values), a.dtype)

    low, high = _for_each_end("end_values", end, a.ndim)[axis]
    first, last = lax.slice_in_dim(a, 0, 1, axis=axis), lax.slice_in_dim(a, a.shape[axis] - 1, a.shape[axis], axis=axis)
    return lax.concatenate([ramp(before, first, low), a, lax.rev(ramp(after, last, high), (axis,))], axis)
