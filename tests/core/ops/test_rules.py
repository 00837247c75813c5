"""The derivative, transpose and batch rules of each primitive, on the reference backend in float64.

jvp against central differences, transposes against jvp (the two pairings of tangents and cotangents agree), batching
against a loop over examples. What the functions compute is tested in ``test_values``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax.ir.check import check_jaxpr
from polyax.ir.config import config

RNG = np.random.default_rng(0)
X = RNG.uniform(0.3, 0.9, (3, 4))
Y = RNG.uniform(0.3, 0.9, (3, 4))
SIGNED = RNG.uniform(-0.9, 0.9, (3, 4))
ABOVE_ONE = X + 1.0
V = RNG.uniform(0.3, 0.9, 4)
CUBE = RNG.uniform(-1, 1, (2, 3, 4))
ROWS = np.array([[2], [0], [2]], np.int32)
STARTS = np.int32(1), np.int32(2)
Z = SIGNED + 1j * Y
IMAGES = RNG.uniform(-1, 1, (2, 4, 5, 6))
WINDOWS = RNG.uniform(-1, 1, (6, 4, 2, 3))
SQUARE = RNG.uniform(-1, 1, (3, 3))
SIZES = (3, 3), (4, 2), (2, 4)


def positive_definite(x: Any) -> Any:
    adjoint = lax.transpose(lax.conj(x) if x.dtype.kind == "c" else x, (1, 0))
    return lax.add(lax.dot(x, adjoint), np.eye(3).astype(x.dtype))


TAKE_ROWS = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
PUT_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))
UNIQUE = np.array([[2], [0]], np.int32)

Case = tuple[Callable[..., Any], tuple[Any, ...]]

UNARY = {
    "neg": SIGNED, "sin": SIGNED, "cos": SIGNED, "tan": SIGNED, "asin": SIGNED, "acos": SIGNED, "atan": SIGNED,
    "sinh": SIGNED, "cosh": SIGNED, "tanh": SIGNED, "asinh": SIGNED, "acosh": ABOVE_ONE, "atanh": SIGNED,
    "exp": SIGNED, "exp2": SIGNED, "expm1": SIGNED, "log": X, "log1p": SIGNED, "logistic": SIGNED, "sqrt": X,
    "rsqrt": X, "cbrt": X, "square": SIGNED, "abs": SIGNED, "reciprocal": X, "sign": SIGNED, "floor": SIGNED,
    "ceil": SIGNED, "round": SIGNED, "copy": SIGNED, "stop_gradient": None,
}  # fmt: skip

BINARY = ("add", "sub", "mul", "div", "max", "min", "pow", "atan2", "rem")

CASES: dict[str, Case] = {
    **{name: (getattr(lax, name), (x,)) for name, x in UNARY.items() if x is not None},
    **{name: (getattr(lax, name), (X, Y)) for name in BINARY},
    **{f"{name} of scalar and array": (getattr(lax, name), (np.float64(0.7), Y)) for name in BINARY},
    **{f"{name} of column and array": (getattr(lax, name), (X[:, :1], Y)) for name in BINARY},
    "integer_pow": (lambda x: lax.integer_pow(x, 3), (SIGNED,)),
    "integer_pow, negative": (lambda x: lax.integer_pow(x, -2), (X,)),
    "pow to an integer": (lambda x: lax.pow(x, np.full((3, 4), 2, np.int32)), (SIGNED,)),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 11, 52), (X,)),
    "convert": (lambda x: lax.convert_element_type(lax.convert_element_type(x, "complex128"), "float64"), (X,)),
    "complex parts": (lambda z: lax.mul(lax.real(z), lax.imag(lax.conj(lax.mul(z, z)))), (Z,)),
    "complex from parts": (lambda x, y: lax.complex(x, lax.mul(x, y)), (X, Y)),
    "complex abs": (lambda z: lax.abs(lax.exp(z)), (Z,)),
    "conj of real": (lambda x: lax.real(lax.conj(x)), (X,)),
    "select": (lambda x, y: lax.select(lax.gt(x, y), lax.mul(x, x), y), (X, Y)),
    "select by scalar": (lambda x, y: lax.select(lax.gt(lax.reduce_max(x, (0, 1)), 0.7), x, y), (X, Y)),
    "select_n of three": (lambda x, y: lax.select_n(np.arange(12, dtype=np.int32).reshape(3, 4) % 3, x, y, x), (X, Y)),
    "clamp": (lax.clamp, (np.float64(0.5), X, np.float64(0.8))),
    "clamp by arrays": (lax.clamp, (SIGNED, X, Y)),
    "broadcast_in_dim": (lambda x: lax.broadcast_in_dim(x, (3, 2, 4), (0, 2)), (X,)),
    "broadcast_in_dim, stretching": (lambda x: lax.broadcast_in_dim(x, (3, 2, 4), (0, 2)), (X[:, :1],)),
    "reshape": (lambda x: lax.reshape(x, (2, 6)), (X,)),
    "reshape with dimensions": (lambda x: lax.reshape(x, (2, 6), (1, 0)), (X,)),
    "squeeze": (lambda x: lax.squeeze(x, (1,)), (X[:, None],)),
    "expand_dims": (lambda x: lax.expand_dims(x, (0, 2)), (X,)),
    "transpose": (lambda x: lax.transpose(x, (2, 0, 1)), (CUBE,)),
    "rev": (lambda x: lax.rev(x, (0, 2)), (CUBE,)),
    "slice": (lambda x: lax.slice(x, (1, 0), (3, 3)), (X,)),
    "strided slice": (lambda x: lax.slice(x, (0, 1), (3, 4), (2, 2)), (X,)),
    "pad": (lambda x, v: lax.pad(x, v, ((1, 2, 0), (0, 1, 2))), (X, np.float64(0.3))),
    "pad, cutting": (lambda x, v: lax.pad(x, v, ((-1, 1, 0), (2, -2, 1))), (X, np.float64(0.3))),
    "concatenate": (lambda x, y: lax.concatenate([x, y, x], 1), (X, Y)),
    "split": (lambda x: lax.concatenate(lax.split(x, (1, 3), 1)[::-1], 1), (X,)),
    "tile": (lambda x: lax.tile(x, (2, 3)), (X,)),
    "reduce_sum": (lambda x: lax.reduce_sum(x, (0, 2)), (CUBE,)),
    "reduce_prod": (lambda x: lax.reduce_prod(x, (1,)), (CUBE,)),
    "reduce_max": (lambda x: lax.reduce_max(x, (1, 2)), (CUBE,)),
    "reduce_min": (lambda x: lax.reduce_min(x, (0,)), (CUBE,)),
    **{
        f"{name} reverse={reverse}": (lambda x, n=name, r=reverse: getattr(lax, n)(x, 1, r), (SIGNED,))
        for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
        for reverse in (False, True)
    },
    "dot_general, vectors": (lambda x, y: lax.dot_general(x, y, (((0,), (0,)), ((), ()))), (V, V[::-1] + 0.1)),
    "dot_general, matrices": (lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((), ()))), (X, Y)),
    "dot_general, batched": (
        lambda x, y: lax.dot_general(x, y, (((2, 0), (3, 1)), ((1,), (0,)))),
        (CUBE, RNG.uniform(-1, 1, (3, 2, 5, 4))),
    ),
    "dynamic_slice": (lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 2)), (X, *STARTS)),
    "dynamic_update_slice": (lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)), (X, Y[:2, :2], *STARTS)),
    "gather": (lambda x, i: lax.gather(x, i, TAKE_ROWS, (1, 4)), (X, ROWS)),
    "gather, out of bounds": (
        lambda x, i: lax.gather(x, i, TAKE_ROWS, (1, 4), mode="fill", fill_value=2.0),
        (X, np.array([[5], [1]], np.int32)),
    ),
    "gather, clipped": (
        lambda x, i: lax.gather(x, i, TAKE_ROWS, (1, 4), mode="clip"),
        (X, np.array([[5], [1]], np.int32)),
    ),
    **{
        name: (lambda x, i, u, n=name: getattr(lax, n)(x, i, u, PUT_ROWS), (X, ROWS, Y))
        for name in ("scatter", "scatter_add", "scatter_sub", "scatter_min", "scatter_max")
    },
    "scatter_mul": (lambda x, i, u: lax.scatter_mul(x, i, u, PUT_ROWS, unique_indices=True), (X, UNIQUE, Y[:2])),
    "sort": (lambda x: lax.sort(x, 0), (SIGNED,)),
    "sort of two": (lambda x, y: lax.sort((x, y), 1), (SIGNED, Y)),
    "top_k": (lambda x: lax.top_k(x, 2)[0], (SIGNED,)),
    "cholesky": (lambda x: lax.linalg.cholesky(positive_definite(x)), (SQUARE,)),
    "cholesky, complex": (lambda x: lax.linalg.cholesky(positive_definite(x)), (SQUARE + 1j * SQUARE.T,)),
    **{
        f"triangular_solve left={left} lower={low} transpose={tr} unit={unit}": (
            lambda a, b, flags={"left_side": left, "lower": low, "transpose_a": tr, "unit_diagonal": unit}: (
                lax.linalg.triangular_solve(a, b, **flags)
            ),
            (SQUARE + 2 * np.eye(3), RNG.uniform(-1, 1, (3, 4) if left else (4, 3))),
        )
        for left, low, tr, unit in [(1, 1, 0, 0), (1, 0, 1, 1), (0, 1, 1, 0), (0, 0, 0, 0)]
    },
    "triangular_solve, conjugated": (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True, conjugate_a=True),
        (SQUARE + 2 * np.eye(3) + 0.3j, Z),
    ),
    **{f"lu {m} x {n}": (lambda x: lax.linalg.lu(x)[0], (RNG.uniform(-1, 1, (m, n)),)) for m, n in SIZES},
    "qr": (lambda x: lax.linalg.qr(x, full_matrices=False), (RNG.uniform(-1, 1, (4, 3)),)),
    "qr, complex": (lambda x: lax.linalg.qr(x), (SQUARE + 1j * SQUARE.T,)),
    "eigh": (lambda x: lax.linalg.eigh(x), (SQUARE,)),
    **{
        f"svd {m} x {n}": (lambda x: lax.linalg.svd(x, full_matrices=False), (RNG.uniform(-1, 1, (m, n)),))
        for m, n in SIZES
    },
    "singular values": (lambda x: lax.linalg.svd(x, compute_uv=False), (RNG.uniform(-1, 1, (3, 2)),)),
    **{name: (getattr(lax, name), (SIGNED,)) for name in ("erf", "erfc", "erf_inv")},
    **{name: (getattr(lax, name), (ABOVE_ONE,)) for name in ("lgamma", "digamma")},
    "polygamma": (lambda x: lax.polygamma(2.0, x), (ABOVE_ONE,)),
    "zeta": (lambda q: lax.zeta(3.0, q), (ABOVE_ONE,)),
    "fft": (lambda z: lax.fft(z, "fft", (3, 4)), (Z,)),
    "ifft": (lambda z: lax.fft(z, "ifft", (4,)), (Z,)),
    **{f"rfft of {n}": (lambda x, n=n: lax.fft(x, "rfft", (3, n)), (CUBE[..., :n],)) for n in (3, 4)},
    **{f"irfft to {n}": (lambda z, n=n: lax.fft(z, "irfft", (3, n)), (Z[:, : n // 2 + 1],)) for n in (4, 5)},
    "conv": (lambda x, w: lax.conv(x, w, (1, 1), "SAME"), (IMAGES, WINDOWS)),
    "conv, strided": (
        lambda x, w: lax.conv_general_dilated(x, w, (2, 1), [(1, 2), (0, -1)], (1, 2), (2, 1)),
        (IMAGES, WINDOWS),
    ),
    "conv, channels last": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        (IMAGES.transpose(0, 2, 3, 1), WINDOWS.transpose(2, 3, 1, 0)),
    ),
    "conv, feature groups": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID", feature_group_count=2),
        (IMAGES, WINDOWS[:, :2]),
    ),
    "conv, batch groups": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID", batch_group_count=2),
        (IMAGES, WINDOWS),
    ),
    "conv_transpose": (
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
        (IMAGES[..., :3], RNG.uniform(-1, 1, (2, 2, 3, 2))),
    ),
}

every_case = pytest.mark.parametrize("name", CASES)


@pytest.fixture(autouse=True)
def float64_on_the_reference() -> Iterator[None]:
    with config.override(enable_x64=True), polyax.default_device(polyax.devices("reference")[0]):
        yield


def moving(args: tuple[Any, ...]) -> list[int]:
    return [i for i, x in enumerate(args) if np.asarray(x).dtype.kind in "fc"]


def directions(args: tuple[Any, ...]) -> list[Any]:
    rng = np.random.default_rng(1)
    made = []
    for i in moving(args):
        x = np.asarray(args[i])
        t = rng.uniform(-1, 1, x.shape)
        made.append(t + 1j * rng.uniform(-1, 1, x.shape) if x.dtype.kind == "c" else t)
    return made


def of_floats(fun: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    """``fun`` as a function of its inexact arguments, with a flat list of array results."""

    def apply(*floats: Any) -> list[Any]:
        merged = list(args)
        for i, x in zip(moving(args), floats):
            merged[i] = x
        outs = fun(*merged)
        return list(outs) if isinstance(outs, (tuple, list)) else [outs]

    return apply


def inputs(args: tuple[Any, ...]) -> list[Any]:
    return [args[i] for i in moving(args)]


@every_case
def test_jvp_is_the_central_difference(name: str) -> None:
    fun, args = CASES[name]
    f, xs, ts = of_floats(fun, args), inputs(args), directions(args)
    _, got = polyax.jvp(f, xs, ts)
    h = 1e-6
    ahead = f(*(x + h * t for x, t in zip(xs, ts)))
    behind = f(*(x - h * t for x, t in zip(xs, ts)))
    for g, a, b in zip(got, ahead, behind):
        np.testing.assert_allclose(g, (np.asarray(a) - np.asarray(b)) / (2 * h), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "name", ["cholesky", "qr", "eigh", "svd 3 x 3", "lu 4 x 2", "cumprod reverse=False", "sort", "scatter"]
)
def test_second_derivatives(name: str) -> None:
    fun, args = CASES[name]
    f, xs, ts = of_floats(fun, args), inputs(args), directions(args)
    _, got = polyax.jvp(lambda *xs: polyax.jvp(f, list(xs), ts)[1], xs, ts)
    h = 1e-5
    ahead = polyax.jvp(f, [x + h * t for x, t in zip(xs, ts)], ts)[1]
    behind = polyax.jvp(f, [x - h * t for x, t in zip(xs, ts)], ts)[1]
    for g, a, b in zip(got, ahead, behind):
        np.testing.assert_allclose(g, (np.asarray(a) - np.asarray(b)) / (2 * h), rtol=1e-4, atol=1e-5)


@every_case
def test_transpose_pairs_with_jvp(name: str) -> None:
    fun, args = CASES[name]
    f, xs, ts = of_floats(fun, args), inputs(args), directions(args)
    outs, tangents = polyax.jvp(f, xs, ts)
    cts = [np.cos(1.0 + np.arange(o.size)).reshape(o.shape).astype(o.dtype) for o in outs]
    back = polyax.vjp(f, *xs)[1](cts)
    left = sum(np.sum(np.asarray(ct) * np.asarray(t)) for ct, t in zip(cts, tangents))
    right = sum(np.sum(np.asarray(ct) * t) for ct, t in zip(back, ts))
    np.testing.assert_allclose(np.real(left), np.real(right), rtol=1e-9, atol=1e-12)
    for ct, x in zip(back, xs):
        assert (ct.shape, ct.dtype) == (x.shape, x.dtype)


def stack(x: Any, axis: int) -> np.ndarray:
    """Three examples of ``x``; integers stay the valid indices that they are, in another order."""
    x = np.asarray(x)
    if x.dtype.kind in "iu":
        return np.stack([x, x[::-1] if x.ndim else x - 1, x], axis)
    return np.stack([x, x * 0.9, x * 1.05], axis)


@every_case
@pytest.mark.parametrize("which", ["all", "each", "last axis"])
def test_vmap_is_a_loop(name: str, which: str) -> None:
    fun, args = CASES[name]
    if which == "each":
        choices = [[0 if i == j else None for i in range(len(args))] for j in range(len(args))]
    else:
        choices = [[0 if which == "all" else np.ndim(x) for x in args]]
    for axes in choices:
        mapped = [x if a is None else stack(x, a) for x, a in zip(args, axes)]
        got = polyax.vmap(fun, in_axes=tuple(axes))(*mapped)
        rows = [fun(*(x if a is None else np.take(x, i, a) for x, a in zip(mapped, axes))) for i in range(3)]
        for g, *examples in zip(as_list(got), *map(as_list, rows)):
            np.testing.assert_allclose(g, np.stack([np.asarray(e) for e in examples]), rtol=1e-12)


def as_list(outs: Any) -> list[Any]:
    return list(outs) if isinstance(outs, (tuple, list)) else [outs]


@every_case
def test_programs_are_well_typed(name: str) -> None:
    fun, args = CASES[name]
    f, xs = of_floats(fun, args), inputs(args)
    check_jaxpr(polyax.make_jaxpr(lambda xs, ts: polyax.jvp(f, xs, ts))(xs, directions(args)).jaxpr)
    outs = f(*xs)
    check_jaxpr(polyax.make_jaxpr(lambda cts, *xs: polyax.vjp(f, *xs)[1](cts))(outs, *xs).jaxpr)
