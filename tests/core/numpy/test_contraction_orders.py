"""In which order operands of ``einsum`` meet: the cheapest of all, and what is told of it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.numpy.contraction_orders import best_path, path_info

CASES = [
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)], [(0, 1), (0, 1)], 360, 128),
    ("ij,jk,kl,lm->im", [(10, 100), (100, 5), (5, 50), (50, 3)], [(2, 3), (1, 2), (0, 1)], 3_000_000, 10_500),
    ("bqd,bkd,bkv->bqv", [(2, 8, 4)] * 3, [(1, 2), (0, 1)], 6144, 1024),
    ("i,j,k->ijk", [(3,), (4,), (5,)], [(0, 1), (0, 1)], 120, 72),
    ("...i,ij,j", [(2, 3), (3, 4), (4,)], [(1, 2), (0, 1)], 72, 36),
    ("ii->i", [(3, 3)], [(0,)], 3, 3),
]
"""Products with the path, the operations in one loop, and those along the path that JAX gives."""


@pytest.mark.parametrize("text, shapes, path, naive, cost", CASES)
def test_paths_cost_what_they_should(text, shapes, path, naive, cost):
    found, info = jnp.einsum_path(text, *map(np.ones, shapes))
    assert found == info.path == path
    assert (info.naive_cost, info.opt_cost, info.speedup) == (naive, cost, naive / cost)


def every_path(n):
    if n == 1:
        yield ()
        return
    for pair in itertools.combinations(range(n), 2):
        for rest in every_path(n - 1):
            yield (pair, *rest)


@pytest.mark.parametrize("seed", range(4))
def test_no_path_is_cheaper(seed):
    rng = np.random.default_rng(seed)
    terms = tuple("".join(rng.choice(list("abcdef"), 2, replace=False)) for _ in range(4))
    sizes = dict(zip("abcdef", rng.integers(1, 9, 6).tolist(), strict=True))
    shapes = tuple(tuple(sizes[c] for c in t) for t in terms)
    output = terms[0][0]
    cost = lambda path: path_info(terms, output, shapes, list(path)).opt_cost
    assert cost(best_path(terms, output, shapes)) == min(map(cost, every_path(4)))


def test_of_many_operands_some_path_is_found():
    letters = "abcdefghi"
    terms = [f"{a}{b}" for a, b in itertools.pairwise(letters)]
    operands = [np.full((2, 2), 0.5, np.float32)] * len(terms)
    path, _ = jnp.einsum_path(f"{','.join(terms)}->ai", *operands)
    assert len(path) == len(terms) - 1
    np.testing.assert_array_equal(jnp.einsum(f"{','.join(terms)}->ai", *operands), np.full((2, 2), 0.5))


def test_products_follow_the_path():
    program = polyax.make_jaxpr(lambda *x: jnp.einsum("ij,jk,kl->il", *x))(*map(np.ones, [(2, 9), (9, 3), (3, 9)]))
    made = [e.outvars[0].aval.shape for e in program.jaxpr.eqns if e.primitive.name == "dot_general"]
    assert sorted(made[0]) == [2, 3] and sorted(made[1]) == [2, 9]


def test_the_text_is_a_table():
    _, info = jnp.einsum_path("ij,jk,kl->il", np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5)))
    lines = repr(info).splitlines()
    assert lines[0] == "  Complete contraction:  ij,jk,kl->il"
    assert lines[4] == "  Optimized FLOP count:  1.280e+02"
    assert [line.split() for line in lines[-2:]] == [["3", "ij,jk->ik", "kl,ik->il"], ["3", "kl,ik->il", "il->il"]]
    assert info.largest_intermediate == 10 and info.scale_list == [3, 3]
    assert info.contraction_list[0] == ((0, 1), {"j"}, "ij,jk->ik", ("kl", "ik"))


def test_symbolic_dimensions_have_an_order_too():
    n = polyax.export.symbolic_shape("n, 4")
    program = polyax.export.export(polyax.jit(lambda *x: jnp.einsum("ij,jk,kl->il", *x)))
    exported = program(*(polyax.ShapeDtypeStruct(s, np.float32) for s in (n, (4, 5), (5, 6))))
    np.testing.assert_array_equal(exported.call(*map(np.ones, [(3, 4), (4, 5), (5, 6)])), np.full((3, 6), 20.0))
