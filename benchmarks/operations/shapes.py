"""What moves elements: transposes, slices, joints, gathers and scatters."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

from operations.operation import Arrays, Operation, cast, cube, normal, rng, square, vector, vectors

PERMUTATIONS = ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))

MOVES = {
    "transpose": lambda m, x: x.T,
    "roll[1]": lambda m, x: m.numpy.roll(x, 5, 1),
    "flip[1]": lambda m, x: m.numpy.flip(x, 1),
    "concatenate[1]": lambda m, x: m.numpy.concatenate([x, x], 1),
    "repeat[1]": lambda m, x: m.numpy.repeat(x, 2, 1),
    "pad": lambda m, x: m.numpy.pad(x, 2),
    "strided slice": lambda m, x: x[::2, ::2],
    "diagonal": lambda m, x: m.numpy.diagonal(x),
    "gather": lambda m, x: x[m.numpy.arange(x.shape[0]) * 7 % x.shape[0]],
}
"""What is tried on several types, beside the operations of all."""
WINDOWS = (8, 16)
"""Shifted parts that are added up."""


def operations() -> Iterator[Operation]:
    yield Operation("transpose", lambda m, x: x.T, square)
    yield Operation("x.T + x", lambda m, x: x.T + x, square)
    for dtype in ("bfloat16", "int8", "float64", "complex64"):
        for name, call in MOVES.items():
            yield Operation(f"{dtype} {name}", call, cast(square, dtype), gradient=False)
    for dtype in ("float32", "bfloat16", "int8", "complex64"):
        for count in WINDOWS:
            yield Operation(f"{dtype} {count} windows", _windows(count), cast(square, dtype), gradient=False)
    yield Operation("complex64 adjoint", lambda m, x: x.conj().T, cast(square, "complex64"), gradient=False)
    for order in PERMUTATIONS:
        yield Operation(f"transpose{order}", lambda m, x, order=order: m.numpy.transpose(x, order), cube)
    for axis in (0, 1):
        yield Operation(f"roll[{axis}]", lambda m, x, axis=axis: m.numpy.roll(x, 5, axis), square)
        yield Operation(f"flip[{axis}]", lambda m, x, axis=axis: m.numpy.flip(x, axis), square)
        yield Operation(f"concatenate[{axis}]", lambda m, x, axis=axis: m.numpy.concatenate([x, x], axis), square)
        yield Operation(f"stack[{axis}]", lambda m, x, axis=axis: m.numpy.stack([x, x], axis), square)
        yield Operation(f"repeat[{axis}]", lambda m, x, axis=axis: m.numpy.repeat(x, 2, axis), square)
        yield Operation(f"diff[{axis}]", lambda m, x, axis=axis: m.numpy.diff(x, axis=axis), square)
        yield Operation(f"take[{axis}]", lambda m, x, i, axis=axis: m.numpy.take(x, i, axis), _with_rows)
    yield Operation("pad", lambda m, x: m.numpy.pad(x, 2), square)
    yield Operation("pad[reflect]", lambda m, x: m.numpy.pad(x, 2, mode="reflect"), square)
    yield Operation("tile", lambda m, x: m.numpy.tile(x, (2, 1)), square)
    yield Operation("slice", lambda m, x: x[1:-1, 1:-1], square)
    yield Operation("strided slice", lambda m, x: x[::2, ::2], square)
    yield Operation("tril", lambda m, x: m.numpy.tril(x), square)
    yield Operation("diagonal", lambda m, x: m.numpy.diagonal(x), square)
    yield Operation("outer", lambda m, x: x[:, None] * x[None, :], lambda n: (normal(isqrt(n)),))
    yield Operation("meshgrid", lambda m, x: m.numpy.stack(m.numpy.meshgrid(x, x)), lambda n: (normal(isqrt(n)),))
    yield Operation("gather", lambda m, x, i: x[i], _with_indices)
    yield Operation("gather[two]", lambda m, x, i, j: x[i, j], _with_points)
    yield Operation("take_along_axis", lambda m, x, i: m.numpy.take_along_axis(x, i, 0), _with_indices)
    yield Operation("set", lambda m, x, i: x.at[i].set(1.0), _with_indices)
    yield Operation("add.at", lambda m, x, i: x.at[i].add(1.0), _with_indices)
    yield Operation("one_hot", lambda m, i: m.nn.one_hot(i, 64), lambda n: (_indices(n // 64, 64),), gradient=False)
    for name in ("sum", "max", "prod"):
        yield Operation(f"segment_{name}", _segments(name), _with_segments, gradient=name != "prod")
    yield Operation("bincount", lambda m, i: m.numpy.bincount(i, length=100), _hundred, gradient=False)
    yield Operation("histogram", lambda m, x: m.numpy.histogram(x, 50)[0], vector, gradient=False)
    yield Operation("interp", lambda m, x, y: m.numpy.interp(x, m.numpy.linspace(-3, 3, 100), y[:100]), vectors)
    yield Operation("convolve", lambda m, x: m.numpy.convolve(x, m.numpy.ones(9) / 9, "same"), vector)


def _windows(count: int) -> Any:
    return lambda m, x: m.numpy.stack([x[:, n : n + x.shape[1] - count] for n in range(count)]).sum(0)


def _segments(name: str) -> Any:
    return lambda m, x, i: getattr(m.ops, f"segment_{name}")(x, i, 100)


def _indices(n: int, most: int) -> Any:
    return rng().integers(0, most, n).astype("int32")


def _hundred(n: int) -> Arrays:
    return (_indices(n, 100),)


def _with_indices(n: int) -> Arrays:
    return normal(n), _indices(n, n)


def _with_segments(n: int) -> Arrays:
    return normal(n), _indices(n, 100)


def _with_rows(n: int) -> Arrays:
    side = isqrt(n)
    return normal(side, side), _indices(side, side)


def _with_points(n: int) -> Arrays:
    side = isqrt(n)
    return normal(side, side), _indices(n, side), _indices(n, side)
