"""The walker: kernels of all shapes against NumPy, interpreted and compiled, with and without canonical form."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from kernels.building import F32, F64, I64, CompiledKernels, axes, elementwise, indices, inputs, one_store, result_of

from polyax_kernels.emit.c import c_source
from polyax_kernels.emit.numpy import run
from polyax_kernels.emit.schedule import choose
from polyax_kernels.ir.expr import Axis, Expr, cast, consing, const, fold, index, load, op, param, where
from polyax_kernels.ir.kernel import Kernel, Operand, Schedule, Stage, Store
from polyax_kernels.passes.canonical import canonical

RNG = np.random.default_rng(0)


def check(kernel: Kernel, arrays: Sequence[np.ndarray], *wants: np.ndarray, rtol: float = 1e-5) -> None:
    """All ways of running ``kernel`` give ``wants`` for its outputs; they are its last operands that aren't local."""
    general, params = canonical(kernel)
    forms = [(kernel, Schedule(), ()), (kernel, choose(kernel), ()), (general, choose(general), params)]
    library = CompiledKernels([k for k, _, _ in forms], [s for _, s, _ in forms])
    for n, (form, schedule, scalars) in enumerate(forms):
        for runner in ("numpy", "c"):
            outs = [np.full(w.shape, 99, w.dtype) for w in wants]
            buffers = [*[a.copy() for a in arrays], *outs]
            if runner == "c":
                library.run(n, form, buffers, scalars)
            else:
                run(form, buffers, scalars, schedule)
            for got, want in zip(outs, wants, strict=True):
                np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-6, err_msg=f"{runner}, form {n}")


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(F32)


def test_elementwise_with_shared_parts() -> None:
    x, y = normal(5, 7), normal(5, 7)
    with consing():
        kernel = elementwise(lambda a, b: op("sin", a * b) + a * b, x, y)
        check(kernel, [x, y], np.sin(x * y) + x * y)


@pytest.mark.parametrize(
    "shapes", [((4, 1), (1, 6)), ((1, 6), (4, 6)), ((4, 6), (6,)), ((), (4, 6)), ((2, 1, 3), (5, 1))]
)
def test_broadcasts(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, y = (normal(*s) for s in shapes)
    want = x - y
    with consing():
        grid = axes(*want.shape)
        loads = [load(n, F32, broadcast_indices(a.shape, grid)) for n, a in enumerate((x, y))]
        check(one_store(grid, loads[0] - loads[1], [x, y]), [x, y], want)


def broadcast_indices(shape: tuple[int, ...], grid: tuple[Axis, ...]) -> tuple[Expr, ...]:
    return tuple(const(0) if n == 1 else index(a) for n, a in zip(shape, grid[len(grid) - len(shape) :], strict=True))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_transposes(order: tuple[int, ...]) -> None:
    x = normal(3, 4, 5)
    with consing():
        grid = axes(*x.transpose(order).shape)
        at = [index(grid[order.index(d)]) for d in range(3)]
        check(one_store(grid, load(0, F32, tuple(at)), [x]), [x], x.transpose(order))


PATTERNS = [p for n in range(1, 4) for p in itertools.combinations(range(3), n)]
COMBINES = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
NEUTRAL = {"add": 0.0, "mul": 1.0, "max": -np.inf, "min": np.inf}


@pytest.mark.parametrize("reduced", PATTERNS, ids=str)
@pytest.mark.parametrize("combine", COMBINES)
def test_reductions(reduced: tuple[int, ...], combine: str) -> None:
    x = normal(3, 40, 5)
    with consing():
        nest = axes(*x.shape)
        over = tuple(nest[d] for d in reduced)
        grid = tuple(a for a in nest if a not in over)
        total = fold(combine, over, (const(NEUTRAL[combine], F32),), (load(0, F32, indices(nest)),))
        want = COMBINES[combine].reduce(x.astype(F64), axis=reduced).astype(F32)
        check(one_store(grid, total, [x]), [x], want, rtol=1e-4)


def test_reductions_of_integers_and_booleans() -> None:
    x = RNG.integers(0, 2, (6, 9)).astype(np.int32)
    functions: dict[str, Callable[..., np.ndarray]] = {
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }
    with consing():
        i, k = axes(6, 9)
        for combine, f in functions.items():
            for dtype in (np.dtype("int32"), np.dtype("bool")):
                y = x.astype(dtype)
                total = fold(
                    combine, (k,), (const(combine == "and" and -1, dtype),), (load(0, dtype, indices((i, k))),)
                )
                check(one_store((i,), total, [y]), [y], f.reduce(y, axis=1))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_argmax_takes_the_first_and_nan_before_all(name: str, axis: int) -> None:
    x = RNG.integers(0, 4, (7, 9)).astype(F32)
    x[2, 3] = x[2, 5] = np.nan
    with consing():
        nest = axes(*x.shape)
        body = load(0, F32, indices(nest))
        start = const(-np.inf if name == "argmax" else np.inf, F32)
        pair = [fold(name, (nest[axis],), (start, const(0)), (body, index(nest[axis])), which) for which in (0, 1)]
        kept = nest[1 - axis]
        stores = tuple(Store(1 + n, (index(kept),), x) for n, x in enumerate(pair))
        outs = [Operand((kept.extent,), d, "out") for d in (F32, I64)]
        kernel = Kernel((kept,), (Stage((), stores),), (*inputs([x]), *outs))
        check(kernel, [x], (np.max if name == "argmax" else np.min)(x, axis=axis), getattr(np, name)(x, axis=axis))


def test_product() -> None:
    for m, k, n in ((5, 6, 7), (3, 40, 70), (1, 1, 1), (33, 4, 64)):
        a, b = normal(m, k), normal(k, n)
        with consing():
            i, j, l = axes(m, n, k)
            term = load(0, F32, indices((i, l))) * load(1, F32, indices((l, j)))
            total = fold("add", (l,), (const(0, F32),), (term,))
            check(one_store((i, j), op("max", total, const(0, F32)), [a, b]), [a, b], np.maximum(a @ b, 0), rtol=1e-4)


def test_column_statistics_share_their_loops() -> None:
    x = normal(50, 37)
    with consing():
        j, k = axes(37, 50)
        at = load(0, F32, indices((k, j)))
        mean = fold("add", (k,), (const(0, F32),), (at,)) * (1 / 50)
        variance = fold("add", (k,), (const(0, F32),), ((at - mean) * (at - mean),)) * (1 / 50)
        check(one_store((j,), variance, [x]), [x], x.var(0), rtol=1e-4)


def test_masked_loads_read_nothing_outside() -> None:
    x = normal(4)
    with consing():
        (i,) = axes(10)
        shifted = index(i) - 3
        inside = (shifted >= 0) & (shifted < 4)
        check(
            one_store((i,), load(0, F32, (shifted,), inside, const(7, F32)), [x]), [x], np.pad(x, 3, constant_values=7)
        )


def test_masked_stores() -> None:
    x = normal(6)
    with consing():
        (i,) = axes(6)
        value = load(0, F32, (index(i),))
        store = Store(1, (index(i),), value, mask=value > 0)
        kernel = Kernel((i,), (Stage((), (store,)),), (*inputs([x]), Operand((6,), F32, "inout")))
        check(kernel, [x], np.where(x > 0, x, 99))


def test_softmax_in_stages_with_a_local_row() -> None:
    x = normal(9, 20)
    with consing():
        i, k = axes(*x.shape)
        at = load(0, F32, indices((i, k)))
        row = load(2, F32, (index(k),))
        greatest = fold("max", (k,), (const(-np.inf, F32),), (at,))
        total = fold("add", (k,), (const(0, F32),), (row,))
        stages = (
            Stage((k,), (Store(2, (index(k),), op("exp", at - greatest)),)),
            Stage((k,), (Store(1, indices((i, k)), row / total),)),
        )
        kernel = Kernel((i,), stages, (*inputs([x]), Operand(x.shape, F32, "out"), Operand((20,), F32, "local")))
        e = np.exp(x - x.max(1, keepdims=True))
        check(kernel, [x], e / e.sum(1, keepdims=True))


def test_stages_that_rewrite_a_local_value_see_the_new_one() -> None:
    with consing():
        (i,) = axes(4)
        scratch = load(1, F32, (const(0),))
        stages = (
            Stage((), (Store(1, (const(0),), cast(index(i), F32)),)),
            Stage((), (Store(1, (const(0),), scratch + 1),)),
            Stage((), (Store(0, (index(i),), scratch),)),
        )
        kernel = Kernel((i,), stages, (Operand((4,), F32, "out"), Operand((1,), F32, "local")))
        check(kernel, [], np.arange(1, 5, dtype=F32))


def test_ordered_accumulation_into_repeated_places() -> None:
    x, where_ = normal(20), RNG.integers(0, 3, 20)
    want = np.full(3, 99, F32)
    np.add.at(want, where_, x)
    with consing():
        (i,) = axes(20)
        store = Store(2, (load(1, I64, (index(i),)),), load(0, F32, (index(i),)), combine="add")
        operands = (*inputs([x, where_]), Operand((3,), F32, "inout"))
        check(Kernel((i,), (Stage((), (store,)),), operands, ordered=True), [x, where_], want)


def test_prefix_sums_along_a_stage() -> None:
    x = normal(5, 8)
    with consing():
        i, k = axes(*x.shape)
        running = load(2, F32, (const(0),)) + load(0, F32, indices((i, k)))
        stages = (
            Stage((), (Store(2, (const(0),), const(0, F32)),)),
            Stage((k,), (Store(2, (const(0),), running), Store(1, indices((i, k)), running))),
        )
        kernel = Kernel((i,), stages, (*inputs([x]), Operand(x.shape, F32, "out"), Operand((1,), F32, "local")))
        check(kernel, [x], x.cumsum(1))


def test_kernels_without_a_grid() -> None:
    x = normal(11)
    with consing():
        (k,) = axes(11)
        total = fold("add", (k,), (const(0, F32),), (load(0, F32, (index(k),)),))
        operands = (*inputs([x]), Operand((), F32, "out"))
        kernel = Kernel((), (Stage((), (Store(1, (), total),)),), operands)
        check_whole(kernel, x, x.sum())


def check_whole(kernel: Kernel, x: np.ndarray, want: np.ndarray) -> None:
    out = np.zeros((), F32)
    run(kernel, [x, out])
    np.testing.assert_allclose(out, want, rtol=1e-5)


def test_launch_parameters() -> None:
    with consing():
        (i,) = axes(6)
        kernel = one_store((i,), index(i) * param(0) + param(1), [])
        out, compiled = result_of(kernel), result_of(kernel)
        run(kernel, [out], (10, 3))
        CompiledKernels([kernel]).run(0, kernel, [compiled], (10, 3))
        np.testing.assert_array_equal(out, np.arange(6) * 10 + 3)
        np.testing.assert_array_equal(compiled, out)


def test_narrow_floats_round_after_each_operation() -> None:
    for name in ("float16", "bfloat16"):
        x = (RNG.standard_normal(64) * 30).astype(name)
        with consing():
            kernel = elementwise(lambda v: v * v + v, x)
            out = result_of(kernel)
            run(kernel, [x, out])
            np.testing.assert_array_equal(out, x * x + x)


def test_random_index_maps() -> None:
    """Reversed, strided and reshaped reads, selected between, in loops of random shapes."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        shape = tuple(int(n) for n in rng.integers(1, 6, size=rng.integers(1, 4)))
        x = rng.standard_normal(shape).astype(F32)
        y = rng.standard_normal(2 * x.size).astype(F32)
        with consing():
            grid = axes(*shape)
            flat = const(0)
            for a in grid:
                flat = flat * a.extent + index(a)
            reversed_ = load(0, F32, tuple(a.extent - 1 - index(a) for a in grid))
            value = where(flat % 3 < 1, reversed_, load(1, F32, (flat * 2 + 1,)))
            numbers = np.arange(x.size).reshape(shape)
            want = np.where(numbers % 3 < 1, x[tuple(slice(None, None, -1) for _ in shape)], y[numbers * 2 + 1])
            check(one_store(grid, value, [x, y]), [x, y], want)


def test_folds_over_the_same_axes_share_a_loop() -> None:
    x = normal(6, 30)
    with consing():
        i, k = axes(*x.shape)
        at = load(0, F32, indices((i, k)))
        zero = (const(0, F32),)
        total, squares = fold("add", (k,), zero, (at,)), fold("add", (k,), zero, (at * at,))
        greatest = fold("max", (k,), (const(-np.inf, F32),), (at,))
        centred = fold("add", (k,), zero, (op("abs", at - total),))
        kernel = one_store((i,), squares + greatest - total + centred, [x])
        assert c_source(kernel, Schedule()).count("for (") == 3  # the rows; the first three; the one that needs them
        sums = x.sum(1)
        want = (x * x).sum(1) + x.max(1) - sums + np.abs(x - sums[:, None]).sum(1)
        check(kernel, [x], want, rtol=1e-4)


def test_narrow_folds_round_once() -> None:
    x = RNG.standard_normal((4, 500)).astype("float16")
    half = x.dtype
    with consing():
        i, k = axes(*x.shape)
        at = load(0, half, indices((i, k)))
        total = fold("add", (k,), (const(0, half),), (at,))
        start = (const(-np.inf, half), const(0))
        place = fold("argmax", (k,), start, (at, index(k)), 1)
        kernel = one_store((i,), total + cast(place, half), [x])
        check(kernel, [x], (x.astype(F32).sum(1).astype(half) + x.argmax(1).astype(half)), rtol=2e-3)


def test_folds_that_read_what_their_stage_writes_keep_their_order() -> None:
    """x[k] = sum(x[:]) in place, one k after the other."""
    x = normal(1, 6)
    with consing():
        i, k, l = axes(1, 6, 6)
        total = fold("add", (l,), (const(0, F32),), (load(1, F32, indices((i, l))),))
        fill = Stage((k,), (Store(1, indices((i, k)), load(0, F32, indices((i, k)))),))
        stage = Stage((k,), (Store(1, indices((i, k)), total),))
        kernel = Kernel((i,), (fill, stage), (*inputs([x]), Operand(x.shape, F32, "out")))
        want = x.copy()
        for n in range(6):
            want[0, n] = want.sum()
        check(kernel, [x], want)
