"""The index simplifier against brute force: equal on every point, and free of division where it can be."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from polyax_kernels.ir import scalars
from polyax_kernels.ir.expr import INT, Axis, Expr, cast, consing, const, fold, index, load, op, postorder, where
from polyax_kernels.ir.intervals import Intervals
from polyax_kernels.ir.kernel import Kernel, Operand, Stage, Store
from polyax_kernels.ir.simplify import Simplifier, simplify
from polyax_kernels.ir.strides import stride

F32 = np.dtype("float32")


def evaluate(x: Expr, point: dict[Axis, int]) -> int:
    values: dict[Expr, np.ndarray] = {}
    for node in postorder(x):
        if node.kind == "index":
            values[node] = np.asarray(point[node.attr])
        elif node.kind == "const":
            values[node] = np.asarray(node.attr, node.dtype)
        elif node.kind == "cast":
            values[node] = scalars.cast(values[node.args[0]], node.dtype)
        else:
            values[node] = scalars.evaluate(node.attr, *(values[a] for a in node.args))
    return int(values[x])


def points(axes: list[Axis]) -> list[dict[Axis, int]]:
    return [dict(zip(axes, p, strict=True)) for p in itertools.product(*(range(int(a.extent)) for a in axes))]  # type: ignore[arg-type]


def random_index(rng: random.Random, axes: list[Axis], depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.1:
        return index(rng.choice(axes)) if rng.random() < 0.8 else const(rng.randint(-5, 20))
    x = random_index(rng, axes, depth - 1)
    match rng.choice(["add", "sub", "mul", "floordiv", "mod", "floordiv", "mod", "min", "max", "select", "cast"]):
        case "mul":
            return x * rng.randint(-2, 12)
        case "floordiv":
            return x // rng.randint(1, 12)
        case "mod":
            return x % rng.randint(1, 12)
        case "select":
            return where(x < rng.randint(0, 9), x, random_index(rng, axes, depth - 1))
        case "cast":
            return cast(cast(x, "int32"), INT)
        case name:
            return op(name, x, random_index(rng, axes, depth - 1))


@pytest.mark.parametrize("seed", range(150))
def test_simplified_is_equal_everywhere_and_inside_its_interval(seed: int) -> None:
    rng = random.Random(seed)
    with consing():
        axes = [Axis(rng.choice([1, 2, 3, 4, 6, 8]), n) for n in "ijk"]
        x = random_index(rng, axes, 5)
        y, interval = Simplifier()(x), Intervals()
        for p in points(axes):
            value = evaluate(x, p)
            assert evaluate(y, p) == value, f"{x} became {y} at {p}"
            assert interval(x)[0] <= value <= interval(x)[1], f"{x} at {p}"


def reshaped(rng: random.Random, flat: Expr, size: int) -> Expr:
    """The flat index after reading through an array of another shape, perhaps shifted or reversed in a dimension."""
    divisors = [n for n in range(1, size + 1) if size % n == 0]
    inner = rng.choice(divisors)
    row, column = flat // inner, flat % inner
    match rng.randint(0, 3):
        case 0:
            row = size // inner - 1 - row
        case 1:
            column = inner - 1 - column
        case 2:
            row, column = row - rng.randint(0, 2), column + rng.randint(0, 3)
        case _:
            pass
    return row * inner + column if rng.random() < 0.7 else column * (size // inner) + row


@pytest.mark.parametrize("seed", range(100))
def test_chains_of_reshapes(seed: int) -> None:
    rng = random.Random(seed)
    with consing():
        shape = [rng.choice([2, 3, 4, 6]) for _ in range(3)]
        axes = [Axis(n, name) for n, name in zip(shape, "ijk", strict=True)]
        x = (index(axes[0]) * shape[1] + index(axes[1])) * shape[2] + index(axes[2]) - rng.randint(0, 3)
        for _ in range(rng.randint(1, 4)):
            x = reshaped(rng, x, math.prod(shape))
        y = Simplifier()(x)
        for p in points(axes):
            assert evaluate(y, p) == evaluate(x, p), f"{x} became {y} at {p}"


@pytest.mark.parametrize(
    "build, want",
    [
        (lambda i, j, k: (i * 7 + j) // 7, "i"),
        (lambda i, j, k: (i * 7 + j) % 7, "j"),
        (lambda i, j, k: (i * 42 + j * 6 + k) // 6 % 7, "j"),
        (lambda i, j, k: (i * 42 + j * 6 + k) % 42 // 6, "j"),
        (lambda i, j, k: ((i * 7 + j) // 7) * 7 + (i * 7 + j) % 7, "add(mul(i, 7), j)"),
        (lambda i, j, k: i // 3 * 3 + i % 3, "i"),
        (lambda i, j, k: (i * 4 + k) // 8, "floordiv(add(mul(i, 4), k), 8)"),
        (lambda i, j, k: (i * 12 + j) // 24, "floordiv(i, 2)"),
        (lambda i, j, k: (i * 12 + j) % 24, "add(mul(mod(i, 2), 12), j)"),
        (lambda i, j, k: i // 2 // 3, "floordiv(i, 6)"),
        (lambda i, j, k: i + 0, "i"),
        (lambda i, j, k: i - i, "0"),
        (lambda i, j, k: op("max", i, const(0)), "i"),
        (lambda i, j, k: op("clamp", const(0), j, const(6)), "j"),
        (lambda i, j, k: i < 10, "True"),
        (lambda i, j, k: (j >= 7) | (k < 3), "lt(k, 3)"),
        (lambda i, j, k: where(i < 0, j, k), "k"),
    ],
)
def test_known_forms(build: Callable[..., Expr], want: str) -> None:
    with consing():
        i, j, k = (index(Axis(n, name)) for n, name in ((10, "i"), (7, "j"), (6, "k")))
        assert repr(Simplifier()(build(i, j, k))) == want


def test_floats_keep_their_arithmetic() -> None:
    with consing():
        x = load(0, F32, (const(0),))
        for y in (x + 0.0, x * 0.0, x - x, (x + 1.0) + 1.0, const(0.1, F32) + 0.2):
            assert Simplifier()(y) is y
        assert Simplifier()(x * 1.0) is x and Simplifier()(x / 1.0) is x


def test_integers_that_go_through_another_type() -> None:
    with consing():
        x, short, wide = load(0, np.dtype("int32"), (const(0),)), np.dtype("int16"), np.dtype("int64")
        assert Simplifier()(cast(cast(x, wide), x.dtype)) is x
        for y in (cast(cast(x, F32), x.dtype), cast(cast(x, short), x.dtype)):
            assert Simplifier()(y) is y


def test_masks_that_always_or_never_hold() -> None:
    with consing():
        i = Axis(4, "i")
        at = index(i)
        always = load(0, F32, (at,), at < 4, const(0, F32))
        never = load(0, F32, (at - 4,), at >= 4, const(3, F32))
        stores = (Store(1, (at,), always + never, mask=at < 9), Store(1, (at,), never, mask=at < 0))
        operands = (Operand((4,), F32, "in"), Operand((4,), F32, "out"))
        (stage,) = simplify(Kernel((i,), (Stage((), stores),), operands)).stages
        (store,) = stage.stores
        assert store.mask is None and repr(store.value) == "add(load<0>(i), 3.0)"


def test_folds_over_single_points_are_no_loops() -> None:
    with consing():
        i, one = Axis(8, "i"), Axis(1, "one")
        start, x = const(0.0, F32), load(0, F32, (index(i) + index(one),))
        assert (
            repr(Simplifier()(fold("add", (one,), (start,), (load(0, F32, (index(one),)),)))) == "add(0.0, load<0>(0))"
        )
        assert Simplifier()(fold("add", (one, i), (start,), (x,))).attr.axes == (i,)
        assert Simplifier()(fold("add", (Axis(0), i), (start,), (x,))) is start


def test_strides() -> None:
    with consing():
        i, j = Axis(8, "i"), Axis(4, "j")
        at = index(i) * 12 - index(j) * 3 + 5
        assert (stride(at, i), stride(at, j)) == (12, -3)
        assert stride(index(i) // 2, i) is None and stride(index(i) // 2, j) == 0


@pytest.mark.parametrize("outer", ["floordiv", "mod"])
@pytest.mark.parametrize("inner", ["floordiv", "mod"])
def test_divisions_by_the_size_of_an_empty_axis(inner: str, outer: str) -> None:
    """Nothing is computed at its places, of which there are none; they are left as they are."""
    with consing():
        place = op(inner, index(Axis(10, "i")), const(0))
        assert place in set(postorder(Simplifier()(op(outer, place, const(5)))))
