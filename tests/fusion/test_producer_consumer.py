"""Producer-consumer fusion: the producer is computed in its consumer's kernel, and written for others."""

from __future__ import annotations

import numpy as np
from fusion.support import reasons, steps
from kernels.programs import assert_same, on_kernels, on_reference

from polyax.ops import basis, elementwise, index

NAMES = ["instruction", "producer_consumer"]
RNG = np.random.default_rng(5)
X, Y = (RNG.standard_normal((200, 100)).astype("f4") for _ in range(2))


def momentum(p, m, g):
    m = basis.add(basis.mul(m, 0.9), g)
    return [basis.sub(p, basis.mul(m, 0.1)), m]


def test_a_result_that_is_used_again_is_not_read_again() -> None:
    args = [X, Y, X + 1]
    assert len(steps(["instruction"], momentum, *args)) == 2
    (step,) = steps(NAMES, momentum, *args)
    assert step.bytes_moved == 5 * X.nbytes
    assert_same(on_kernels(momentum, args, NAMES), on_reference(momentum, args))


def test_rows_that_others_need_are_written_while_their_sums_are_taken() -> None:
    def f(x):
        y = elementwise.exp(x)
        return [y, basis.reduce_sum(y, (1,))]

    (step,) = steps(NAMES, f, X)
    assert step.bytes_moved == 2 * X.nbytes + 4 * len(X)
    assert_same(on_kernels(f, [X], NAMES), on_reference(f, [X]))


def test_a_chain_of_results_is_one_kernel() -> None:
    def f(x):
        results = [elementwise.sin(x)]
        for _ in range(4):
            results.append(basis.mul(elementwise.sin(results[-1]), 0.5))
        return results

    assert len(steps(NAMES, f, X)) == 1
    assert_same(on_kernels(f, [X], NAMES), on_reference(f, [X]))


def test_a_step_between_keeps_them_apart() -> None:
    def f(x):
        y = elementwise.exp(x)
        return basis.div(y, basis.broadcast_in_dim(basis.reduce_sum(y, (0,)), x.aval.shape, (1,)))

    assert "another step needs the one and is needed by the other" in reasons(NAMES, f, X)
    assert_same(on_kernels(f, [X], NAMES), on_reference(f, [X]))


def test_columns_of_rows_are_no_rows() -> None:
    def f(x):
        y = elementwise.exp(x)
        return [y, basis.reduce_sum(y, (0,))]

    assert len(steps(NAMES, f, X)) == 2
    assert any("one thread" in r or "scratch" in r for r in reasons(NAMES, f, X))


def test_little_to_save_is_no_reason() -> None:
    def f(x, y):
        y = elementwise.sin(y)
        return [y, basis.add(x, basis.broadcast_in_dim(y, x.aval.shape, (0,)))]

    assert any("bytes would be moved instead" in r for r in reasons(NAMES, f, X, X[:, 0].copy()))


def test_an_update_in_place_comes_after_all_readers_of_the_old_contents() -> None:
    def f(x, row):
        y = elementwise.sin(x)
        updated = index.dynamic_update_slice(y, row, (3, 0))
        return [basis.reduce_sum(y, (1,)), updated, basis.reduce_sum(updated, (1,))]

    args = [X, X[:1] * 0 + 7]
    assert_same(on_kernels(f, args, NAMES), on_reference(f, args))
