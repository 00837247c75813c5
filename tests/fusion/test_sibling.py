"""Sibling fusion: what reads the same operand at the same points is one kernel."""

from __future__ import annotations

import numpy as np
import pytest
from fusion.support import reasons, steps
from kernels.programs import assert_same, on_kernels, on_reference

from polyax.ops import basis, elementwise, reduce

NAMES = ["instruction", "sibling"]
RNG = np.random.default_rng(4)
X, Y = (RNG.standard_normal((40, 30)).astype("f4") for _ in range(2))
SQUARE = RNG.standard_normal((40, 40)).astype("f4")


def moments(x):
    return [basis.reduce_sum(x, (0,)), basis.reduce_sum(basis.mul(x, x), (0,)), reduce.reduce_max(x, (0,))]


def waves(x):
    return [elementwise.sin(x), elementwise.cos(x)]


@pytest.mark.parametrize(("program", "results"), [(moments, 3), (waves, 2)])
def test_the_operand_is_read_once(program, results: int) -> None:
    assert len(steps(["instruction"], program, X)) == results
    (step,) = steps(NAMES, program, X)
    assert step.bytes_moved == X.nbytes + sum(a.nbytes for a in step.out_avals)
    assert_same(on_kernels(program, [X], NAMES), on_reference(program, [X]))


def test_chunks_of_large_reductions_share_their_loops_too() -> None:
    def all_moments(x):
        return [basis.reduce_sum(x, (0, 1)), basis.reduce_sum(basis.mul(x, x), (0, 1))]

    large = np.ones((600, 500), "f4")
    assert len(steps(NAMES, all_moments, large)) == 2
    assert_same(on_kernels(all_moments, [large], NAMES), on_reference(all_moments, [large]))


def test_nested_reductions_of_siblings_keep_their_own_loops() -> None:
    def variance(x):
        mean = basis.broadcast_in_dim(basis.mul(basis.reduce_sum(x, (0,)), 1 / 40), x.aval.shape, (1,))
        centred = basis.sub(x, mean)
        return basis.reduce_sum(basis.mul(centred, centred), (0,))

    both = lambda x: [variance(x), variance(elementwise.exp(x)), reduce.reduce_max(x, (0,))]
    assert_same(on_kernels(both, [X], NAMES), on_reference(both, [X]))


def test_other_points_of_the_operand_are_other_reads() -> None:
    both = lambda x: [elementwise.sin(x), elementwise.cos(basis.transpose(x, (1, 0)))]
    assert "they read the same at different points" in reasons(NAMES, both, SQUARE)
    sums = lambda x: [basis.reduce_sum(x, (0,)), basis.reduce_sum(x, (1,))]
    assert len(steps(NAMES, sums, SQUARE)) == 2


def test_a_small_operand_is_no_reason() -> None:
    def scaled(x, y, s):
        return [basis.add(elementwise.sin(x), s), basis.add(elementwise.cos(y), s)]

    assert len(steps(NAMES, scaled, X, Y, np.float32(2))) == 2


def test_grids_must_be_equal() -> None:
    both = lambda x: [basis.reduce_sum(x, (0,)), basis.reduce_sum(x, (1,))]
    assert len(steps(NAMES, both, X)) == 2


def test_a_step_between_keeps_siblings_apart() -> None:
    def f(x):
        y = elementwise.sin(x)
        total = basis.reduce_sum(y, (0,))
        return [y, elementwise.cos(basis.add(x, basis.broadcast_in_dim(total, x.aval.shape, (1,))))]

    assert "another step needs the one and is needed by the other" in reasons(NAMES, f, X)
    assert_same(on_kernels(f, [X], NAMES), on_reference(f, [X]))


def test_siblings_are_joined_as_long_as_an_eighth_is_saved() -> None:
    f = lambda x: [elementwise.sin(basis.mul(x, float(n))) for n in range(60)]
    assert {len(step.out_avals) for step in steps(NAMES, f, X)} == {6}
    assert any("bytes would be moved instead" in reason for reason in reasons(NAMES, f, X))
    assert_same(on_kernels(f, [X], NAMES), on_reference(f, [X]))
