"""Elements looked up in each row: rows that are cut stay where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core.partition.checking import MESH, moves
from fuzz.checks import assert_close

import polyax
import polyax.numpy as jnp
from support.meshed import check_blocks, partitioned

N = 8
X = np.random.default_rng(0).normal(size=(N, 5)).astype(np.float32)
CUBE = np.random.default_rng(1).normal(size=(N, 3, N)).astype(np.float32)
I = np.random.default_rng(2).integers(-7, 7, N).astype(np.int32)
ROWS, INDICES = (("x", "y"), ()), (("x", "y"),)


def exchanged(fun: Callable[..., Any], *args: Any, ins: Any, outs: Any = None) -> Any:
    """What devices exchange, after the results have been compared with those of one device."""
    found = partitioned(fun, args, MESH, ins, outs)
    wanted = polyax.tree.leaves(polyax.jit(fun, device=polyax.devices("reference")[0])(*args))
    check_blocks(found, MESH, args, [np.asarray(y) for y in wanted], assert_close)
    return moves(found)


ROWWISE = {
    "read": lambda x, i: x[jnp.arange(N), i],
    "read the other way round": lambda x, i: x.T[i, jnp.arange(N)],
    "filled where nothing is": lambda x, i: x.at[jnp.arange(N), i].get(mode="fill", fill_value=9.0),
    "clipped": lambda x, i: x.at[jnp.arange(N), i].get(mode="clip"),
    "numbers of another type": lambda x, i: x[jnp.arange(N, dtype="uint8"), i],
    "set": lambda x, i: x.at[jnp.arange(N), i].set(1.0),
    "added to": lambda x, i: x.at[jnp.arange(N), i].add(i * 2.0),
    "multiplied, some dropped": lambda x, i: x.at[jnp.arange(N), i].multiply(3.0, mode="drop"),
    "differentiated": polyax.grad(lambda x, i: (polyax.nn.log_softmax(x)[jnp.arange(N), i] ** 2 * i).sum()),
}


@pytest.mark.parametrize("name", ROWWISE)
def test_rows_stay_where_they_are(name: str) -> None:
    assert exchanged(ROWWISE[name], X, I, ins=[ROWS, INDICES]) == []


OTHERS = {
    "other rows": lambda x, i: x[jnp.arange(N)[::-1], i],
    "the next rows": lambda x, i: x[(jnp.arange(N) + 1) % N, i],
    "fewer than there are": lambda x, i: x[jnp.arange(4), i[:4]],
    "rows by columns": lambda x, i: x[jnp.arange(N)[:, None], i],
    "no numbers that count": lambda x, i: x[i, jnp.clip(i, 0, 4)],
    "each row twice": lambda x, i: x[jnp.arange(2 * N) // 2, jnp.tile(i, 2)],
    "those that are equal": lambda x, i: x[jnp.where(i > 0, jnp.arange(N), 0), i],
    "counted from below zero": lambda x, i: x[jnp.arange(-N, 0), i],
    "set twice": lambda x, i: x.at[jnp.arange(N), i].set(1.0).at[jnp.arange(N)[::-1], i].add(2.0),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("ins", [[ROWS, INDICES], [ROWS, ((),)], [((), ()), INDICES]], ids=str)
def test_other_indices_mean_what_they_did(name: str, ins: Any) -> None:
    exchanged(OTHERS[name], X, I, ins=ins)


def test_numbers_that_leave_their_type_do_not_count() -> None:
    tall = np.arange(600, dtype=np.float32).reshape(300, 2)
    wrapped = lambda x, i: x[jnp.arange(300).astype("uint8"), i]
    exchanged(wrapped, tall, np.zeros(300, np.int32), ins=[(("x", "y"), ()), (("x", "y"),)])


def test_in_more_dimensions() -> None:
    last = lambda x, i: x[jnp.arange(N), :, i]
    assert exchanged(last, CUBE, I, ins=[(("x", "y"), (), ()), INDICES]) == []
    both = lambda x, i: x[jnp.arange(N)[:, None], jnp.arange(3), i[:, None]]
    assert exchanged(both, CUBE, I, ins=[(("x", "y"), (), ()), INDICES]) == []
