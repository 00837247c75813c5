"""Running values that groups of threads share: rows that a group has room for, and longer ones in chunks."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from kernels.gpu_backend import grouped_backend
from kernels.programs import compiled, launched, on_reference, traced

from polyax import lax
from polyax_kernels.gpu.cumulative import CHUNK, LONG
from polyax_kernels.gpu.scans import LONGEST, SHORTEST

RNG = np.random.default_rng(3)
FUNCTIONS = {"sum": lax.cumsum, "product": lax.cumprod, "maximum": lax.cummax, "minimum": lax.cummin}


def check(fun: Any, x: np.ndarray, group: int = 64, eager: bool = False, exact: bool = False) -> list[Any]:
    """That ``fun`` gives what NumPy's loops give; the schedules of its kernels are returned."""
    backend: Any = grouped_backend(group)
    closed = traced(fun, [x])
    executable: Any = compiled(backend, closed, eager=eager)
    (got,), (want,) = launched(backend, executable, closed, [x]), on_reference(fun, [x])
    np.testing.assert_allclose(got, want, rtol=0 if exact else 2e-5, atol=0 if exact else 2e-5)
    return [backend.kernels[0].get(s.kernel, s.scalars).schedule for s in executable.plan.steps]


@pytest.mark.parametrize(
    "name, reverse, length",
    [
        *product(FUNCTIONS, (False, True), (33, LONGEST - 1)),
        *product(["sum"], (False, True), (SHORTEST, 300, 1024)),
    ],
)
def test_rows(name: str, reverse: bool, length: int) -> None:
    x = RNG.uniform(0.9, 1.1, (3, length)).astype(np.float32)
    for eager in (False, True)[: 1 + (name == "sum")]:
        (schedule,) = check(lambda x: FUNCTIONS[name](x, 1, reverse), x, eager=eager)
        assert schedule.scans


def test_what_is_computed_for_each_element_is_part_of_it() -> None:
    x = RNG.uniform(-1, 1, (5, 200)).astype(np.float32)
    (schedule,) = check(lambda x: lax.cumsum(lax.exp(x) * x[:, :1], 1), x)
    assert schedule.scans


def test_nan_and_infinity_reach_what_comes_after_them() -> None:
    x = RNG.uniform(0.9, 1.1, (4, 500)).astype(np.float32)
    x[0, 77], x[1, 100], x[2, [9, 300]] = np.nan, np.inf, [-np.inf, np.inf]
    for fun in FUNCTIONS.values():
        check(lambda x, f=fun: f(x, 1), x)


def test_integers_are_exact() -> None:
    x = RNG.integers(-9, 9, (2, 3000)).astype(np.int32)
    for fun in FUNCTIONS.values():
        check(lambda x, f=fun: f(x, 1), x, exact=True)


@pytest.mark.parametrize("length", [SHORTEST - 1, LONG - 1])
def test_columns_are_walked_by_threads_side_by_side(length: int) -> None:
    x = RNG.uniform(-1, 1, (length, 1500)).astype(np.float32)
    assert not any(s.scans for s in check(lambda x: lax.cumsum(x, 0), x))


@pytest.mark.parametrize(
    "name, reverse, shape, axis",
    [
        *((name, reverse, (2 * LONG,), 0) for name, reverse in product(FUNCTIONS, (False, True))),
        *(
            ("sum", reverse, *place)
            for reverse in (False, True)
            for place in (((3, LONG + 7), 1), ((LONG + 128, 3), 0))
        ),
    ],
)
def test_chunks(name: str, reverse: bool, shape: tuple[int, ...], axis: int) -> None:
    x = 1 + RNG.uniform(-1, 1, shape).astype(np.float32) / 50
    check(lambda x: FUNCTIONS[name](x, axis, reverse), x)


def test_long_rows_are_read_twice_and_written_once() -> None:
    """Chunks' totals, what comes before each chunk, and its running values: no other array is as large."""
    x = RNG.integers(-9, 9, 20 * CHUNK).astype(np.float32)
    backend: Any = grouped_backend(64)
    executable: Any = compiled(backend, traced(lax.cumsum, [x]))
    assert len(executable.plan.steps) == 3
    check(lax.cumsum, x, exact=True)
