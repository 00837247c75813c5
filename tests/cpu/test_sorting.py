"""Sorts and largest elements as native functions, bit for bit against the reference backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax import numpy as jnp
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ops.sort import top_k_p
from polyax_cpu.libraries import sorting

R = np.random.default_rng(11)
CPU, REFERENCE = (polyax.devices(name)[0] for name in ("cpu", "reference"))
REALS = sorted({*sorting.INTEGERS, *sorting.EXPONENTS})
SPECIAL = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-42, -1e-42, 1.5, -1.5]


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with config.override(enable_x64=True):
        yield


def drawn(name: str, shape: Sequence[int]) -> np.ndarray:
    """Few different values, the extreme ones among them."""
    dtype = np.dtype(jnp.dtype(name))
    if name == "bool":
        return R.integers(0, 2, shape).astype(bool)
    if name in sorting.INTEGERS:
        ends = np.iinfo(dtype)
        return R.choice(np.array([ends.min, ends.max, 0, 1, ends.max // 3], dtype), shape)
    return R.choice(np.array(SPECIAL), shape).astype(dtype)


def agree(f: Callable[..., Any], *args: Any) -> None:
    with polyax.default_device(REFERENCE):
        want = polyax.tree.leaves(f(*args))
    with polyax.default_device(CPU):
        found = polyax.tree.leaves(f(*args))
    for x, y in zip(found, want, strict=True):
        assert x.dtype == y.dtype and np.asarray(x).tobytes() == np.asarray(y).tobytes()


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("name", REALS)
def test_orders_are_those_of_the_reference(name: str) -> None:
    """Stable, NaNs last, zeros of both signs equal (but not for the largest); along any dimension, with short, merged
    and no rows."""
    for n, (before, after) in product((0, 1, 2, 16, 17, 70), [((), ()), ((2,), (3,)), ((), (4,)), ((0,), ())]):
        x = drawn(name, (*before, n, *after))
        axis, places = len(before), np.arange(x.size).reshape(x.shape)
        agree(partial(lax.sort, dimension=axis), (x, places))
        for k in {0, n // 8, n // 2, n}:
            agree(partial(lax.top_k, k=k, axis=axis), x)


def spread(name: str, count: int) -> np.ndarray:
    """Any bits, some of them more than once, and some numbers that differ in their lowest digits only."""
    dtype = np.dtype(jnp.dtype(name))
    if name == "bool":
        return drawn(name, (count,))
    anything = R.integers(0, 256, count * dtype.itemsize, np.uint8).view(dtype)
    near = (R.integers(0, 200, count).astype(f"uint{8 * dtype.itemsize}")).view(dtype)
    return R.permutation(np.concatenate([anything[: count // 2], anything[: count // 4], near])[:count])


@pytest.mark.parametrize("name", REALS)
def test_long_rows_are_sorted_digit_by_digit(name: str) -> None:
    digits = len(sorting._digits(8 * np.dtype(jnp.dtype(name)).itemsize + sorting.PLACE_BITS))
    for count in (sorting.MANY * digits - 1, sorting.MANY * digits, 5000):
        places = np.arange(count)
        for x in (spread(name, count), np.full(count, spread(name, count)[0]), np.sort(spread(name, count))[::-1]):
            agree(partial(lax.sort, dimension=0), (x, places))
            agree(partial(lax.sort, dimension=0), x)
    rows = np.stack([spread(name, 1200) for _ in range(3)], 1)
    agree(partial(lax.sort, dimension=0), (rows, np.arange(rows.size).reshape(rows.shape)))
    agree(partial(lax.top_k, k=1000), rows.T.copy())


@pytest.mark.usefixtures("native")
def test_long_rows_of_several_keys() -> None:
    xs = [*(spread(name, 4000) for name in ("int8", "float64", "float32", "uint64")), np.arange(4000)]
    for count in (2, 3, 4):
        agree(lambda *xs, count=count: lax.sort(xs, 0, num_keys=count), *xs)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("names", [*product(["int8", "float32", "uint64", "bool"], repeat=3)][::5])
def test_several_keys(names: tuple[str, ...]) -> None:
    """What isn't a key may be anything."""
    xs = [*(drawn(name, (50, 3)) for name in names), np.arange(150).reshape(50, 3) * 1j]
    for count in (1, 2, 3):
        agree(lambda *xs, count=count: lax.sort(xs, 0, num_keys=count), *xs)


@pytest.mark.parametrize("name", ["int16", "float32", "complex64"])
def test_long_rows(name: str) -> None:
    """Some of them NumPy sorts."""
    x = R.permutation(5000).astype(name)
    agree(lambda x: (lax.sort(x), jnp.argsort(x), jnp.argsort(x, descending=True)), x)
    if name != "complex64":
        agree(lambda x: (lax.top_k(x, 3), lax.top_k(x, 2000)), x)


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("name", ["int16", "float32", "bfloat16", "float64"])
def test_a_few_of_long_rows(name: str) -> None:
    """In any order: rising, each element is better than all before."""
    rising = np.sort(drawn(name, (900,)))
    for x in (rising, rising[::-1], drawn(name, (900,)), np.arange(900).astype(jnp.dtype(name))):
        for k in (1, 2, 3, 8, 50):
            agree(partial(lax.top_k, k=k), x)
            agree(partial(lax.top_k, k=k, axis=1), np.stack([x[None], x[None, ::-1]], 2).repeat(2, 0))


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_shared_by_threads(threads: int) -> None:
    with config.override(num_threads=threads):
        agree(polyax.jit(lambda x: lax.sort(x, 1)), R.standard_normal((37, 900, 5)))


@pytest.mark.usefixtures("native")
def test_in_loops_and_derivatives() -> None:
    def body(_: Any, x: Any) -> Any:
        return jnp.sort(x)[::-1].at[0].multiply(0.5)

    x = R.permutation(9) * 1.0
    agree(lambda x: lax.fori_loop(0, 5, body, x), x)
    agree(polyax.grad(lambda x: lax.scan(lambda c, _: (jnp.sort(c) * np.arange(9.0), None), x, None, 3)[0].sum()), x)


@pytest.mark.parametrize("name", sorted(sorting.INTEGERS))
@pytest.mark.parametrize("axis", [0, 1])
def test_a_long_row_of_integers(name: str, axis: int) -> None:
    agree(partial(lax.sort, dimension=axis), drawn(name, (2 * sorting.LONG, 1) if axis == 0 else (1, 2 * sorting.LONG)))


@pytest.mark.parametrize(
    ("wanted", "length", "few"), [(3, 48, True), (12, 48, True), (13, 48, False), (9, 144, True), (10, 144, False)]
)
def test_which_part_of_a_row_is_found_before_it_is_sorted(wanted: int, length: int, few: bool) -> None:
    """The longer ones are sorted digit by digit, which takes less for each element."""
    _, rows = sorting.LOWERINGS[top_k_p].native(
        [ShapedArray((8, length), np.dtype("float32"))], [], {"axis": 1, "k": wanted}
    )
    assert rows.few == few
