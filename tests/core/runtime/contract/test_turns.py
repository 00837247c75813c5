"""Collectives of members that take turns in one thread."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from polyax.runtime.contract.collectives import Groups, member
from polyax.runtime.contract.turns import Turns

AXES = (("i", 2), ("j", 3))


def in_order(count: int, work: object) -> None:
    for n in range(count):
        work(n)  # type: ignore[operator]


@pytest.mark.parametrize("names", [("i",), ("j",), ("i", "j")])
@pytest.mark.parametrize("elements", [6, 1 << 17])
def test_reductions_are_those_of_the_peers(names: tuple[str, ...], elements: int) -> None:
    group = Turns(AXES, in_order)  # pyright: ignore[reportArgumentType]
    xs = [np.random.default_rng(n).standard_normal(elements).astype(np.float32) for n in range(6)]
    outs = [np.zeros_like(x) for x in xs]

    def reduce(n: int) -> None:
        assert member() == (group, n)
        group.reduce(n, [xs[n]], [outs[n]], "psum", names, None)

    group.collective([partial(reduce, n) for n in range(6)])
    for n, out in enumerate(outs):
        peers, _ = group.peers(n, names)
        np.testing.assert_allclose(out, sum(xs[p] for p in peers), 1e-5, 1e-5)


def test_what_is_dealt_comes_from_the_peers() -> None:
    group, got = Turns(AXES, in_order), {}  # pyright: ignore[reportArgumentType]
    pairs: Groups = ((0, 2), (1,))

    def exchange(n: int) -> None:
        got[n] = group.deal(n, ("j",), pairs, lambda place: np.array([n, place]))
        group.meet(n, None)

    group.collective([partial(exchange, n) for n in range(6)])
    assert [x.tolist() for x in got[0]] == [[0, 0], [2, 0]] and [x.tolist() for x in got[5]] == [[3, 1], [5, 1]]
    assert [x.tolist() for x in got[4]] == [[4, 0]]


def test_an_error_of_a_member_ends_the_collective() -> None:
    def fail() -> None:
        raise ArithmeticError("no")

    with pytest.raises(ArithmeticError):
        Turns((("i", 1),), in_order).collective([fail])  # pyright: ignore[reportArgumentType]
    with pytest.raises(RuntimeError, match="outside of any group"):
        member()
