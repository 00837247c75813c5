"""Each shared kernel rule against the NumPy rule of its primitive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels.programs import assert_same, on_kernels, on_reference

from polyax.ops import (
    basis,
    bits,
    compare,
    contract,
    conv,
    convert,
    cumulative,
    elementwise,
    gather,
    index,
    joining,
    reduce,
    scatter,
    shape,
    slicing,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4)).astype("f4")
Y = RNG.standard_normal((3, 4)).astype("f4")
CUBE = RNG.standard_normal((2, 3, 4)).astype("f4")
INTS = RNG.integers(-5, 6, (3, 4)).astype("i4")
WORDS = RNG.integers(0, 2**32, (4, 5), dtype=np.uint32)
BOOLS = RNG.random((3, 4)) < 0.5
ONE = np.array(1, "i4")

SHAPES: dict[str, tuple[Any, list[np.ndarray]]] = {
    "broadcast_in_dim": (lambda x: basis.broadcast_in_dim(x, (2, 3, 4), (1, 2)), [X]),
    "broadcast stretched": (lambda x: basis.broadcast_in_dim(x, (3, 4), (0, 1)), [X[:, :1]]),
    "transpose": (lambda x: basis.transpose(x, (2, 0, 1)), [CUBE]),
    "reshape merge": (lambda x: basis.reshape(x, (6, 4)), [CUBE]),
    "reshape split": (lambda x: basis.reshape(x, (2, 1, 6, 2)), [CUBE]),
    "reshape fused": (lambda x: elementwise.sin(basis.reshape(elementwise.exp(x), (4, 6))), [CUBE]),
    "reshape to scalar": (lambda x: elementwise.exp(basis.reshape(x, ())), [X[:1, :1]]),
    "squeeze": (lambda x: basis.squeeze(x, (1,)), [X[:, :1]]),
    "rev": (lambda x: shape.rev(x, (0, 2)), [CUBE]),
    "iota": (lambda: basis.broadcasted_iota("int32", (3, 4), 1), []),
    "slice": (lambda x: slicing.slice(x, (1, 0), (3, 4), (1, 2)), [X]),
    "pad": (lambda x: slicing.pad(x, 2.0, ((1, 2, 0), (0, 1, 1))), [X]),
    "pad negative": (lambda x: slicing.pad(x, 2.0, ((-1, 2, 0), (2, -1, 2))), [X]),
    "pad fused": (
        lambda x: elementwise.cos(slicing.pad(elementwise.log(basis.mul(x, x)), 2.0, ((1, 1, 0), (0, 0, 0)))),
        [X],
    ),
    "concatenate": (lambda x, y, z: joining.concatenate([x, y, z], 1), [X, Y[:, :2], Y]),
    "concatenate fused": (
        lambda x, y: joining.concatenate([f(x, y) for f in (basis.add, basis.sub, basis.mul)], 0),
        [X, Y],
    ),
    "concatenate empty": (lambda x, y: joining.concatenate([x, y], 0), [X, Y[:0]]),
    "concatenate many": (
        lambda *xs: elementwise.sin(joining.concatenate([basis.add(x, x) for x in xs], 1)),
        [X[:, : n % 4 + 1].copy() for n in range(12)],
    ),
    "split": (lambda x: joining.split(x, (1, 3), 1), [X]),
    "dynamic_slice": (lambda x, i: index.dynamic_slice(x, (i, 2), (2, 2)), [X, ONE]),
    "dynamic_slice clamped": (lambda x, i: index.dynamic_slice(x, (i, 2), (2, 3)), [X, np.array(9, "i4")]),
    "dynamic_update_slice": (lambda x, y, i: index.dynamic_update_slice(x, y, (i, i)), [X, Y[:2, :2], ONE]),
    "dynamic_update_slice clamped": (lambda x, y, i: index.dynamic_update_slice(x, y, (i, 0)), [X, Y[:2], ONE + 7]),
    "convert": (lambda x: basis.convert_element_type(x, "int32"), [X * 3]),
    "convert to bool": (lambda x: basis.convert_element_type(x, "bool"), [INTS]),
    "bitcast": (lambda x: convert.bitcast_convert_type(x, "int32"), [X]),
    "select_n": (lambda c, x, y: basis.select_n(c, x, y), [BOOLS, X, Y]),
    "select_n many": (lambda c, *xs: basis.select_n(c, *xs), [np.abs(INTS) % 3, X, Y, X + 1]),
    "clamp": (lambda x: compare.clamp(-0.5, x, 0.5), [X]),
    "round": (lambda x: elementwise.round(x), [np.array([0.5, 1.5, -0.5, 2.4], "f4")]),
    "integer_pow": (lambda x: [elementwise.integer_pow(x, n) for n in (0, 1, 2, 5, -3)], [X]),
    "threefry2x32": (lambda a, b, c, d: bits.threefry2x32(a, b, c, d), list(WORDS)),
    "copy": (lambda x: x, [X]),
    "literal": (lambda x: [basis.full((), 2.0), x], [X]),
}

UNARY = [
    "neg",
    "sign",
    "floor",
    "ceil",
    "abs",
    "square",
    "sqrt",
    "rsqrt",
    "cbrt",
    "exp",
    "exp2",
    "log",
    "log1p",
    "expm1",
    "logistic",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sinh",
    "cosh",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "is_finite",
]
BINARY = ["add", "sub", "mul", "div", "max", "min", "rem", "pow", "atan2", "nextafter"]

REDUCTIONS: dict[str, tuple[Any, list[np.ndarray]]] = {
    "sum": (lambda x: basis.reduce_sum(x, (0, 2)), [CUBE]),
    "sum of all": (lambda x: basis.reduce_sum(x, (0, 1, 2)), [CUBE]),
    "max": (lambda x: reduce.reduce_max(x, (1,)), [CUBE]),
    "min": (lambda x: reduce.reduce_min(x, (0,)), [INTS]),
    "prod": (lambda x: reduce.reduce_prod(x, (1,)), [INTS]),
    "and": (lambda x: reduce.reduce_and(x, (1,)), [BOOLS]),
    "or": (lambda x: reduce.reduce_or(x, (1,)), [INTS]),
    "xor": (lambda x: reduce.reduce_xor(x, (0,)), [INTS]),
    "argmax": (lambda x: reduce.argmax(x, 1, "int32"), [X]),
    "argmin": (lambda x: reduce.argmin(x, 0, "int32"), [INTS]),
    "argmax nan": (lambda x: reduce.argmax(x, 0, "int32"), [np.array([1, np.nan, 3, np.nan], "f4")]),
    "cumsum": (lambda x: cumulative.cumsum(x, axis=1), [X]),
    "cumprod": (lambda x: cumulative.cumprod(x, axis=0, reverse=True), [X]),
    "cummax": (lambda x: cumulative.cummax(x, axis=0), [INTS]),
    "cumlogsumexp": (
        lambda x: cumulative.cumlogsumexp(x, axis=0),
        [np.array([-np.inf, -np.inf, 1, 2, np.inf, 3], "f4")],
    ),
    "dot": (lambda x, y: contract.dot(x, basis.transpose(y, (1, 0))), [X, Y]),
    "batched dot": (
        lambda x, y: contract.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))),
        [CUBE, RNG.standard_normal((2, 4, 5)).astype("f4")],
    ),
    "dot of two dimensions": (lambda x, y: contract.dot_general(x, y, (((1, 2), (0, 1)), ((), ()))), [CUBE, X]),
    "outer product": (lambda x, y: contract.dot_general(x, y, (((), ()), ((), ()))), [X[0], Y[1]]),
    "mean and spread": (lambda x: _spread(x), [X]),
    "softmax": (lambda x: _softmax(x), [X]),
}


def _spread(x: Any) -> Any:
    mean = basis.div(basis.reduce_sum(x, (1,)), 4.0)
    centred = basis.sub(x, basis.broadcast_in_dim(mean, (3, 4), (0,)))
    return mean, elementwise.sqrt(basis.reduce_sum(basis.mul(centred, centred), (1,)))


def _softmax(x: Any) -> Any:
    top = basis.broadcast_in_dim(reduce.reduce_max(x, (1,)), (3, 4), (0,))
    weights = elementwise.exp(basis.sub(x, top))
    return basis.div(weights, basis.broadcast_in_dim(basis.reduce_sum(weights, (1,)), (3, 4), (0,)))


def _rows(mode: str) -> Any:
    numbers = gather.GatherDimensionNumbers((1,), (0,), (0,))
    return lambda x, i: gather.gather(x, i, numbers, (1, 4), mode=mode)


def _added(function: Any, **options: Any) -> Any:
    numbers = scatter.ScatterDimensionNumbers((1,), (0,), (0,))
    return lambda x, i, u: function(x, i, u, numbers, **options)


PLACES = np.array([[2], [0], [2], [-1], [7]], "i4")
UPDATES = RNG.standard_normal((5, 4)).astype("f4")
IMAGES = RNG.standard_normal((4, 4, 7, 6)).astype("f4")
EDGES = np.resize(np.array([np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0, -1.0], "f4"), (5, 4))
WINDOW = RNG.standard_normal((6, 4, 3, 2)).astype("f4")
CONVOLUTIONS: dict[str, tuple[Any, list[np.ndarray]]] = {
    "conv same": (lambda x, w: conv.conv_general_dilated(x, w, (1, 2), "SAME"), [IMAGES, WINDOW]),
    "conv dilated": (
        lambda x, w: conv.conv_general_dilated(x, w, (2, 1), ((1, 0), (2, 3)), (1, 2), (2, 1)),
        [IMAGES, WINDOW],
    ),
    "conv channels last": (
        lambda x, w: conv.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        [IMAGES.transpose(0, 2, 3, 1).copy(), WINDOW.transpose(2, 3, 1, 0).copy()],
    ),
    "conv feature groups": (
        lambda x, w: conv.conv_general_dilated(x, w, (1, 1), "VALID", feature_group_count=2),
        [IMAGES, WINDOW[:, :2].copy()],
    ),
    "conv batch groups": (
        lambda x, w: conv.conv_general_dilated(x, w, (1, 1), "VALID", batch_group_count=2),
        [IMAGES, WINDOW],
    ),
}

INDEXING: dict[str, tuple[Any, list[np.ndarray]]] = {
    "gather clip": (_rows("clip"), [X, PLACES]),
    "gather fill": (_rows("fill"), [X, PLACES]),
    "gather elements": (
        lambda x, i: gather.gather(x, i, gather.GatherDimensionNumbers((), (0, 1), (0, 1)), (1, 1), mode="clip"),
        [X, np.array([[0, 1], [2, 3], [9, 9]], "i4")],
    ),
    "gather batched": (
        lambda x, i: gather.gather(
            x, i, gather.GatherDimensionNumbers((), (1,), (1,), (0,), (0,)), (1, 1), mode="clip"
        ),
        [X, np.array([[1], [3], [0]], "i4")],
    ),
    "scatter": (_added(scatter.scatter), [X, PLACES, UPDATES]),
    "scatter-add": (_added(scatter.scatter_add), [X, PLACES, UPDATES]),
    "scatter-sub": (_added(scatter.scatter_sub), [X, PLACES, UPDATES]),
    "scatter-max clip": (_added(scatter.scatter_max, mode="clip"), [X, PLACES, UPDATES]),
    "scatter-max of edges": (_added(scatter.scatter_max), [EDGES, PLACES, EDGES[::-1].copy()]),
    "scatter-min of edges": (_added(scatter.scatter_min), [EDGES, PLACES, EDGES[::-1].copy()]),
}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", [*SHAPES, *REDUCTIONS, *INDEXING, *CONVOLUTIONS])
def test_rule_agrees_with_numpy(name: str, fused: bool) -> None:
    fun, args = (SHAPES | REDUCTIONS | INDEXING | CONVOLUTIONS)[name]
    assert_same(on_kernels(fun, args, fused), on_reference(fun, args))


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, eager: bool) -> None:
    fun = getattr(elementwise, name, None) or getattr(basis, name)
    args = [np.abs(X) + (1 if name == "acosh" else 0) if name != "atanh" else np.tanh(X)]
    with np.errstate(all="ignore"):
        assert_same(on_kernels(fun, args, eager=eager), on_reference(fun, args))


@pytest.mark.parametrize("name", BINARY)
def test_binary_with_stretched_operands(name: str) -> None:
    fun = getattr(elementwise, name, None) or getattr(basis, name)
    for args in ([np.abs(X), Y], [np.abs(X), Y[:, :1]], [np.abs(X), np.array(2, "f4")]):
        assert_same(on_kernels(fun, args), on_reference(fun, args))


def test_comparisons_and_bits() -> None:
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        fun = getattr(compare, name, None) or getattr(basis, name)
        assert_same(on_kernels(fun, [X, np.where(BOOLS, X, Y)]), on_reference(fun, [X, np.where(BOOLS, X, Y)]))
    for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
        assert_same(
            on_kernels(getattr(compare, name), [INTS, INTS]), on_reference(getattr(compare, name), [INTS, INTS])
        )


def test_total_order_and_upper_halves() -> None:
    values = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -1.0], "f4")
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    for p in (compare.eq_to_p, compare.le_to_p, compare.lt_to_p):
        assert_same(on_kernels(p.bind, [x, y]), on_reference(p.bind, [x, y]))
    for words in (WORDS[:2], WORDS[:2].view("i4")):
        assert_same(on_kernels(compare.mulhi_p.bind, list(words)), on_reference(compare.mulhi_p.bind, list(words)))
