"""Sums and their like, over each axis; cumulative ones; norms and softmax."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from operations.operation import Operation, cast, cube, short_rows, square, vector

OVER = "sum prod max min mean var std argmax any logsumexp"
AXES: dict[str, int | None] = {"all": None, "0": 0, "1": 1}
CUMULATIVE = "cumsum cumprod cummax cumlogsumexp"
SMOOTH = "sum prod max min mean var std logsumexp"


def operations() -> Iterator[Operation]:
    for name in OVER.split():
        for label, axis in AXES.items():
            yield Operation(f"{name}[{label}]", _over(name, axis), square, gradient=name in SMOOTH.split())
    for dtype in ("bfloat16", "float16", "complex64", "int8"):
        yield Operation(f"{dtype} sum[0]", _over("sum", 0), cast(square, dtype), gradient=False)
        yield Operation(f"{dtype} sum[1]", _over("sum", 1), cast(square, dtype), gradient=False)
    for dtype in ("bfloat16", "float16", "float32"):
        for name in ("softmax", "log_softmax", "standardize"):
            call = lambda m, x, name=name: getattr(m.nn, name)(x)
            smooth = name != "standardize"  # the sum of its squares is the same for all rows
            yield Operation(f"{name}[{dtype} 32s]", call, cast(short_rows, dtype), gradient=smooth)
    for name in CUMULATIVE.split():
        for axis in (0, 1):
            yield Operation(f"{name}[{axis}]", _cumulative(name, axis), square)
    yield Operation("cumsum[vector]", lambda m, x: m.numpy.cumsum(x), vector)
    yield Operation("sum[middle]", _over("sum", 1), cube)
    yield Operation("sum[0, 2]", lambda m, x: m.numpy.sum(x, axis=(0, 2)), cube)
    for axis in (0, 1):
        yield Operation(f"softmax[{axis}]", lambda m, x, axis=axis: m.nn.softmax(x, axis), square)
        yield Operation(f"log_softmax[{axis}]", lambda m, x, axis=axis: m.nn.log_softmax(x, axis), square)
        yield Operation(f"standardize[{axis}]", lambda m, x, axis=axis: m.nn.standardize(x, axis), square)
        yield Operation(f"norm[{axis}]", lambda m, x, axis=axis: m.numpy.linalg.norm(x, axis=axis), square)
    yield Operation("softmax[middle]", lambda m, x: m.nn.softmax(x, 1), cube)
    yield Operation("cross_entropy", _cross_entropy, square)
    yield Operation("rms_norm", lambda m, x: x / m.numpy.sqrt(m.numpy.mean(x * x, -1, keepdims=True) + 1e-6), square)
    yield Operation("median", lambda m, x: m.numpy.median(x), vector, gradient=False)
    yield Operation("quantile", lambda m, x: m.numpy.quantile(x, 0.3), vector, gradient=False)


def _over(name: str, axis: int | None) -> Callable[..., Any]:
    if name == "logsumexp":
        return lambda m, x: m.nn.logsumexp(x, axis)
    if name == "any":
        return lambda m, x: m.numpy.any(x > 5, axis)
    return lambda m, x: getattr(m.numpy, name)(x, axis)


def _cumulative(name: str, axis: int) -> Callable[..., Any]:
    if name in ("cumsum", "cumprod"):
        return lambda m, x: getattr(m.numpy, name)(x, axis)
    return lambda m, x: getattr(m.lax, name)(x, axis)


def _cross_entropy(m: Any, x: Any) -> Any:
    labels = m.numpy.arange(x.shape[0]) % x.shape[1]
    return -m.numpy.take_along_axis(m.nn.log_softmax(x), labels[:, None], 1)
