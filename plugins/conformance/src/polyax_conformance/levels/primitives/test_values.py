"""What the structural functions of lax compute, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4)).astype(np.float32)
CUBE = RNG.standard_normal((2, 3, 4)).astype(np.float32)
WHOLE = RNG.integers(-9, 9, (3, 4)).astype(np.int32)
IMAGES = RNG.standard_normal((2, 4, 5, 6)).astype(np.float32)
WINDOWS = RNG.standard_normal((6, 2, 2, 3)).astype(np.float32)
Row = tuple[str, Callable[[], Any], Callable[[], Any]]


def convolved(x: np.ndarray, w: np.ndarray, stride: tuple[int, int], dilation: int, groups: int) -> np.ndarray:
    """A strided, atrous, grouped convolution without padding, straight from its definition."""
    n, c, h, v = x.shape
    o, ci, kh, kw = w.shape
    rows = (h - dilation * (kh - 1) - 1) // stride[0] + 1
    columns = (v - dilation * (kw - 1) - 1) // stride[1] + 1
    out = np.zeros((n, o, rows, columns))
    for f, i, j, a, b in np.ndindex(o, rows, columns, kh, kw):
        first = f // (o // groups) * ci
        at = x[:, first : first + ci, i * stride[0] + a * dilation, j * stride[1] + b * dilation]
        out[:, f, i, j] += at @ w[f, :, a, b]
    return out


ROWS: list[Row] = [
    ("reshape in another order", lambda: lax.reshape(X, (2, 6), (1, 0)), lambda: X.T.reshape(2, 6)),
    ("broadcast_in_dim", lambda: lax.broadcast_in_dim(X, (3, 2, 4), (0, 2)), lambda: np.stack([X, X], 1)),
    ("broadcast", lambda: lax.broadcast(X, (2,)), lambda: np.stack([X, X])),
    ("expand_dims", lambda: lax.expand_dims(X, (0, -1)), lambda: X[None, :, :, None]),
    ("collapse", lambda: lax.collapse(CUBE, 0, 2), lambda: CUBE.reshape(6, 4)),
    ("transpose", lambda: lax.transpose(CUBE, (2, 0, 1)), lambda: CUBE.transpose(2, 0, 1)),
    ("rev", lambda: lax.rev(CUBE, (0, 2)), lambda: CUBE[::-1, :, ::-1]),
    ("tile", lambda: lax.tile(X, (2, 3)), lambda: np.tile(X, (2, 3))),
    ("stack", lambda: lax.stack([X, X], 1), lambda: np.stack([X, X], 1)),
    ("unstack", lambda: lax.unstack(X, 1)[2], lambda: X[:, 2]),
    ("slice", lambda: lax.slice(X, (0, 1), (3, 4), (2, 2)), lambda: X[0:3:2, 1:4:2]),
    ("slice_in_dim", lambda: lax.slice_in_dim(X, -3, -1, axis=1), lambda: X[:, -3:-1]),
    ("index_in_dim", lambda: lax.index_in_dim(X, -1, 1, keepdims=False), lambda: X[:, -1]),
    ("pad", lambda: lax.pad(X, 7.0, ((1, 0, 0), (0, 2, 0))), lambda: np.pad(X, ((1, 0), (0, 2)), constant_values=7)),
    ("pad, cutting", lambda: lax.pad(X, 0.0, ((-1, 0, 0), (0, -2, 0))), lambda: X[1:, :-2]),
    ("concatenate", lambda: lax.concatenate([X, X[:, :1]], 1), lambda: np.concatenate([X, X[:, :1]], 1)),
    ("split", lambda: lax.split(X, (1, 3), 1)[1], lambda: X[:, 1:]),
    ("dynamic_index_in_dim", lambda: lax.dynamic_index_in_dim(X, -1, 1, False), lambda: X[:, -1]),
    ("reduce_sum", lambda: lax.reduce_sum(CUBE, (0, 2)), lambda: CUBE.sum((0, 2))),
    ("reduce_prod", lambda: lax.reduce_prod(CUBE, (1,)), lambda: CUBE.prod(1)),
    ("reduce_xor", lambda: lax.reduce_xor(WHOLE, (0,)), lambda: np.bitwise_xor.reduce(WHOLE, 0)),
    ("cumsum", lambda: lax.cumsum(X, 1, reverse=True), lambda: X[:, ::-1].cumsum(1)[:, ::-1]),
    ("cummax", lambda: lax.cummax(X, 0), lambda: np.maximum.accumulate(X, 0)),
    ("cumlogsumexp", lambda: lax.cumlogsumexp(X, 1), lambda: np.log(np.cumsum(np.exp(X), 1))),
    ("dot", lambda: lax.dot(X, X.T), lambda: X @ X.T),
    ("batch_matmul", lambda: lax.batch_matmul(CUBE, CUBE.swapaxes(1, 2)), lambda: CUBE @ CUBE.swapaxes(1, 2)),
    (
        "dot_general",
        lambda: lax.dot_general(CUBE, CUBE, (((2,), (2,)), ((1,), (1,)))),
        lambda: np.einsum("aik,bik->iab", CUBE, CUBE),
    ),
    (
        "dot_general of integers into wider ones",
        lambda: lax.dot(np.full((2, 9), 100, np.int8), np.full((9, 2), 100, np.int8), preferred_element_type=np.int32),
        lambda: np.full((2, 2), 90000, np.int32),
    ),
    ("broadcast_like", lambda: lax.broadcast_like(X[:1], X), lambda: np.broadcast_to(X[:1], X.shape)),
    ("approx_min_k", lambda: lax.approx_min_k(X, 2)[0], lambda: np.sort(X, -1)[:, :2]),
    (
        "patches",
        lambda: lax.conv_general_dilated_patches(IMAGES, (2, 3), (1, 1), "VALID"),
        lambda: (
            np.lib.stride_tricks.sliding_window_view(IMAGES, (2, 3), (2, 3))
            .transpose(0, 1, 4, 5, 2, 3)
            .reshape(2, 24, 4, 4)
        ),
    ),
    (
        "convolution",
        lambda: lax.conv_general_dilated(IMAGES, WINDOWS, (2, 1), "VALID", None, (2, 2), None, 2),
        lambda: convolved(IMAGES, WINDOWS, (2, 1), 2, 2),
    ),
]


@pytest.mark.parametrize(("name", "call", "oracle"), ROWS, ids=[row[0] for row in ROWS])
def test_against_numpy(name: str, call: Callable[[], Any], oracle: Callable[[], Any], platform: str) -> None:
    np.testing.assert_allclose(call(), oracle(), rtol=2e-5, atol=1e-6)


ACCUMULATE = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
    "cumlogsumexp": np.logaddexp,
}


def expected(name: str, x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    flipped = np.flip(x, axis) if reverse else x
    result = ACCUMULATE[name].accumulate(flipped, axis)
    return np.flip(result, axis) if reverse else result


TABLE = np.random.default_rng(4).standard_normal((5, 7))


def test_cumulative_values(platform: str) -> None:
    """Along the last dimension, and backwards along the first."""

    def fun(x: Any) -> Any:
        return [getattr(lax, name)(x, axis, axis == 0) for name in ACCUMULATE for axis in (0, 1)]

    wanted = [expected(name, TABLE, axis, axis == 0) for name in ACCUMULATE for axis in (0, 1)]
    for got, want in zip(polyax.jit(fun)(TABLE.astype(np.float32)), wanted):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_long_rows(platform: str) -> None:
    x = np.random.default_rng(7).standard_normal((5000, 2))
    sums, most = polyax.jit(lambda x: (lax.cumsum(x, 0), lax.cummax(x, 0, reverse=True)))(x.astype(np.float32))
    np.testing.assert_allclose(sums, np.cumsum(x, 0), rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(most, expected("cummax", x.astype(np.float32), 0, True))


def test_top_k_along_another_axis(platform: str) -> None:
    values, where = polyax.jit(lambda x: lax.top_k(x, 2, axis=0))(TABLE.astype(np.float32))
    order = np.argsort(-TABLE, 0, kind="stable")[:2]
    np.testing.assert_array_equal(where, order)
    np.testing.assert_array_equal(values, np.take_along_axis(TABLE.astype(np.float32), order, 0))


@pytest.mark.parametrize("target", ["bool", "uint8", "int16", "float32", "complex64"])
@pytest.mark.parametrize("source", ["bool", "uint8", "int16", "float32", "complex64"])
def test_view(source: str, target: str, platform: str) -> None:
    x = np.arange(32).reshape(2, 16).astype(source)
    expected = x.view("uint8") != 0 if target == "bool" else x.view(target)
    found = polyax.jit(lambda a: a.view(target))(x)
    assert found.dtype == target and np.array_equal(found, expected, equal_nan=True)
