"""Fusion merger: into all consumers or into none."""

from __future__ import annotations

import numpy as np
from fusion.support import reasons, steps
from kernels.programs import assert_same, on_kernels, on_reference

from polyax.ops import basis, elementwise, index

NAMES = ["instruction", "merger"]
X = np.random.default_rng(2).standard_normal((6, 5)).astype("f4")
LARGE = np.random.default_rng(3).standard_normal((300, 100)).astype("f4")


def weights(x):
    """Needs each row of ``exp(x)`` twice: for the sum, and for the result."""
    y = elementwise.exp(x)
    return basis.div(y, basis.broadcast_in_dim(basis.reduce_sum(y, (1,)), x.aval.shape, (0,)))


def test_a_row_that_is_needed_twice_is_stacked() -> None:
    assert len(steps(["instruction"], weights, LARGE)) == 2
    assert len(steps(NAMES, weights, LARGE)) == 1
    assert_same(on_kernels(weights, [LARGE], NAMES), on_reference(weights, [LARGE]))


def test_the_result_of_a_merged_kernel_is_nowhere_in_memory() -> None:
    (step,) = steps(NAMES, weights, LARGE)
    assert step.bytes_moved == 2 * LARGE.nbytes


def test_what_is_expensive_is_not_merged_into_several() -> None:
    def two(x):
        y = elementwise.exp(x)
        return [basis.reduce_sum(y, (0,)), basis.reduce_sum(y, (1,))]

    assert "it is expensive, and 2 kernels would compute it" in reasons(NAMES, two, LARGE)


def test_one_consumer_that_reads_memory_keeps_the_producer_out_of_all() -> None:
    def f(x, row):
        y = basis.mul(x, 2.0)
        return [basis.reduce_sum(y, (1,)), index.dynamic_update_slice(y, row, (3, 0))]

    args = [LARGE, LARGE[:1]]
    assert "dynamic_update_slice stores elsewhere than at its own point" in reasons(NAMES, f, *args)
    assert_same(on_kernels(f, args, NAMES), on_reference(f, args))


def test_results_of_the_program_are_not_merged_away() -> None:
    def f(x):
        y = elementwise.exp(x)
        return [y, basis.broadcast_in_dim(basis.reduce_sum(y, (1,)), x.aval.shape, (0,))]

    assert "it is a result of the program" in reasons(NAMES, f, LARGE)


def test_one_thread_is_not_given_all_the_work() -> None:
    def total(x):
        return basis.reduce_sum(elementwise.exp(basis.reduce_sum(elementwise.exp(x), (1,))), (0,))

    assert "one thread would compute all of it" in reasons(NAMES, total, LARGE)
    assert len(steps(NAMES, total, X)) == 1  # so little that one thread may
    assert_same(on_kernels(total, [X], NAMES), on_reference(total, [X]))


def test_vector_loops_stay_as_long_as_they_are() -> None:
    rows = np.ones((30_000, 4), "f4")
    assert "loops over 4 elements don't fill a vector" in reasons(NAMES, weights, rows)


def test_a_reduction_that_strides_stays_where_lanes_compute_it() -> None:
    def middle(x):
        y = elementwise.exp(x)
        return basis.div(y, basis.broadcast_in_dim(basis.reduce_sum(y, (1,)), x.aval.shape, (0, 2)))

    stacks = np.ones((100, 12, 32), "f4")
    assert "a reduction across rows of the stage would not fill a vector" in reasons(NAMES, middle, stacks)
