"""What the partitioner weighs: bytes that devices send, points that they compute, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from core.partition.checking import BOTH, COLUMNS, NOT, ROWS, W, X, checked, moves

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.meshes.axes import AbstractMesh
from polyax.meshes.sharding import NamedSharding
from polyax.meshes.spec import PartitionSpec
from polyax.ops.constraint import constrain


@pytest.fixture(autouse=True)
def on_the_reference() -> Iterator[None]:
    with polyax.default_device(polyax.devices("reference")[0]):
        yield


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_sums_that_are_larger_than_operands_are_not_put_together() -> None:
    found = checked(lambda x, w: x @ w, [X, ones(4, 512)], [COLUMNS, NOT], [NOT])
    assert moves(found) == [("all_gather", ("y",), 64)]


def test_work_that_is_shared_is_worth_some_bytes() -> None:
    """To gather the operand would send less, but each device would compute everything."""
    found = checked(lambda x, w: x @ w, [ones(800, 64), ones(64, 33)], [COLUMNS, NOT], [NOT])
    assert moves(found) == [("psum", ("y",), 800 * 33 * 4)]
    assert 800 * 64 * 4 // 2 < 800 * 33 * 4, "what gathering would send"


def test_work_in_loops_counts_as_often_as_it_is_done() -> None:
    """Its sums send more than gathering would, but what is shared is much: in 200 steps, not in one."""

    def fun(c: Any) -> Any:
        return lax.scan(lambda c, _: (jnp.tanh(c + c.sum(0)), ()), c, None, length=200)[0]

    found = checked(fun, [ones(64, 64) / 64], [ROWS])
    assert moves(found) == [("psum", ("x",), 64 * 4 * 200)]


def test_exchanges_in_loops_within_loops() -> None:
    def inner(c: Any) -> Any:
        return lax.scan(lambda c, _: (c / 2 + c.sum(0), ()), c, None, length=2)[0]

    found = checked(lambda c: lax.scan(lambda c, _: (inner(c), ()), c, None, length=3)[0], [ones(512, 4)], [ROWS])
    assert [(m.collective, m.nbytes, m.times) for m in found.moves] == [("psum", 16, 6)]


def test_tables_that_several_axes_cut() -> None:
    """A device reads what is in its rows, wherever these begin, and zeros elsewhere."""
    table, rows = ones(512, 4) * np.arange(512, dtype=np.float32)[:, None], np.array([3, 500, 130, 260])
    found = checked(lambda t, i: t[i], [table, rows], [(("x", "y"), ()), ((),)])
    assert [m.collective for m in found.moves] == ["psum"]
    checked(lambda t, i, u: t.at[i].add(u), [table, rows, X[:4]], [(("x", "y"), ()), ((),), NOT])


def test_what_was_brought_somewhere_is_taken_from_there() -> None:
    found = checked(lambda x: (x, x), [X], [ROWS], [NOT, ((), ("x",))])
    assert moves(found) == [("all_gather", ("x",), 64)], "the second is a slice of what was gathered"


def test_what_a_constraint_moves_is_nowhere_else() -> None:
    mesh = AbstractMesh((2, 2), ("x", "y"))

    def fun(x: Any) -> Any:
        return constrain(x, NamedSharding(mesh, PartitionSpec(None, "x"))) + 1

    assert moves(checked(fun, [X], [ROWS], [ROWS])) == [("all_to_all", ("x",), 32)] * 2


def test_dimensions_of_results_that_are_open_are_as_it_suits() -> None:
    assert checked(jnp.sin, [X], [ROWS], [(None, ("y",))]).outs == (BOTH,)


def test_equations_that_keep_shapes_come_before_sums() -> None:
    bias = np.linspace(0, 1, 96, dtype=np.float32).reshape(8, 12)
    found = checked(lambda x, w, b: x @ w + b, [X, W, bias], [ROWS, NOT, ((), ("x",))])
    assert found.outs == (((), ("x",)),)


REASONS = [
    (lambda x: jnp.sort(x, 0), [(8, 4)], [ROWS], "its dimension 0 can't be cut"),
    (lambda x: jnp.cumsum(x, 0), [(8, 4)], [ROWS], "each device must have all of its dimension 0"),
    (lambda x: x.reshape(3, 8), [(8, 3)], [ROWS], "each device must have all of its dimension 0"),
    (
        jnp.add,
        [(800, 4)] * 2,
        [ROWS, ((), ("x",))],
        "axis 'x' cuts other dimensions of this equation, which moves less",
    ),
    (
        jnp.add,
        [(800, 4)] * 2,
        [ROWS, (("y",), ())],
        "its dimension 0 isn't cut so in the other operands and results, and this moves least",
    ),
    (
        lambda x, w: x @ w,
        [(8, 4), (4, 512)],
        [COLUMNS, NOT],
        "its dimension 1 is summed up or contracted, and to put parts together would move more",
    ),
]


@pytest.mark.parametrize(("fun", "shapes", "cuts", "text"), REASONS)
def test_reasons_tell_what_stands_in_the_way(fun: Any, shapes: Any, cuts: Any, text: str) -> None:
    (move,) = checked(fun, [ones(*s) for s in shapes], cuts, [NOT] if "put parts" in text else None).moves
    assert move.reason.endswith(f", since {text}")
