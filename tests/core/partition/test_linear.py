"""Sums that are made after linear operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzz.checks import assert_close

import polyax
import polyax.numpy as jnp
from polyax.meshes.axes import Axes
from polyax.partition import linear
from polyax.partition.partition import partition
from support.meshed import check_blocks, partitioned

MESH: Axes = (("x", 2), ("y", 2))
A, C = (np.random.default_rng(n).normal(size=(8, 16)).astype(np.float32) for n in range(2))
B, D = (np.random.default_rng(n).normal(size=(16, 4)).astype(np.float32) for n in range(2))
LEFT, RIGHT, WHOLE = ((), ("x",)), (("x",), ()), ((), ())


def moves(fun: Callable[..., Any], out: Any = WHOLE, ins: Any = (LEFT, RIGHT, LEFT, RIGHT)) -> list[tuple[str, int]]:
    """What devices exchange, after the results have been compared with those of one device."""
    args = [A, B, C, D][: len(ins)]
    found = partitioned(fun, args, MESH, list(ins), None if out is None else [out])
    check_blocks(found, MESH, args, polyax.tree.leaves(polyax.jit(fun)(*args)), assert_close)
    return [(m.collective, m.total) for m in found.moves]


ONE = ("psum", 8 * 4 * 4)
"""A sum of products, for two devices."""


@pytest.mark.parametrize(
    "fun",
    [
        lambda a, b, c, d: a @ b + c @ d,
        lambda a, b, c, d: a @ b - (c @ d),
        lambda a, b, c, d: (a @ b).T.reshape(32) - (c @ d).T.reshape(32) * 2,
        lambda a, b, c, d: 3 * (a @ b) + (c @ d + c @ d * 0.5),
    ],
)
def test_sums_that_are_added_are_one(fun: Callable[..., Any]) -> None:
    assert moves(fun, out=None) == [ONE]


def test_sums_of_what_is_added_up_are_smaller() -> None:
    assert moves(lambda a, b: (a @ b).sum(0), ((),), (LEFT, RIGHT)) == [("psum", 4 * 4)]
    assert moves(lambda a, b: (a @ b).T[1:3], WHOLE, (LEFT, RIGHT)) == [("psum", 2 * 8 * 4)]


def test_a_sum_that_is_wanted_in_blocks_is_scattered() -> None:
    assert moves(lambda a, b, c, d: a @ b + c @ d, RIGHT) == [("reduce_scatter", 4 * 4 * 4)]


def test_the_reason_is_that_of_the_sum() -> None:
    args = [A, B, C, D]
    found = partitioned(lambda a, b, c, d: jnp.sin(a @ b + c @ d), args, MESH, [LEFT, RIGHT] * 2, [WHOLE])
    (move,) = found.moves
    assert move.reason.startswith("add gives P(None, None, unreduced={'x'})")


def test_what_is_read_twice_is_summed_once() -> None:
    def twice(a: Any, b: Any, c: Any, d: Any) -> Any:
        product = a @ b
        return product + c @ d + jnp.sin(product)

    assert moves(twice) == [ONE, ONE]


def test_what_isn_t_linear_waits_for_the_sum() -> None:
    assert moves(lambda a, b, c, d: (a @ b) * (c @ d)) == [ONE, ONE]
    assert moves(lambda a, b, c, d: jnp.maximum(a @ b, c @ d)) == [ONE, ONE]
    assert moves(lambda a, b: jnp.exp(a @ b).sum(0), ((),), (LEFT, RIGHT)) == [ONE]
    assert moves(lambda a, b: (a @ b + 1).sum(0), ((),), (LEFT, RIGHT)) == [ONE]


def test_sums_along_different_axes_stay_apart() -> None:
    other = ((), ("y",)), (("y",), ())
    assert sorted(moves(lambda a, b, c, d: a @ b + c @ d, WHOLE, (LEFT, RIGHT, *other))) == [ONE, ONE]


def test_a_weight_that_is_used_twice_has_one_sum() -> None:
    """The contributions to its gradient are added before devices exchange them."""

    def loss(w: Any, x: Any) -> Any:
        return (jnp.tanh(x @ w) @ w).mean()

    rng = np.random.default_rng(0)
    w, x = (rng.normal(size=s).astype(np.float32) for s in ((64, 64), (256, 64)))
    found = partitioned(polyax.grad(loss), [w, x], MESH, [WHOLE, (("x", "y"), ())], [WHOLE])
    check_blocks(found, MESH, [w, x], [polyax.grad(loss)(w, x)], assert_close)
    assert [m.collective for m in found.moves] == ["psum"]


def test_a_long_way_to_a_gain_is_gone_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(a: Any, b: Any) -> Any:
        total = a @ b
        for _ in range(50):
            total = jnp.negative(total)
        return total.sum()

    asked: list[Any] = []
    following = linear._following
    monkeypatch.setattr(linear, "_following", lambda var, readers: (asked.append(var), following(var, readers))[1])
    closed = polyax.make_jaxpr(steps)(np.ones((4, 8), np.float32), np.ones((8, 4), np.float32))
    partition(closed, (("x", 2),), [((), ("x",)), (("x",), ())], [None])
    assert 50 <= len(asked) == len(set(asked)) <= 53
