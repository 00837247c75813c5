"""Linear recurrences against loops in float64, and what they refuse."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import polyax
from polyax.ops.recurrence import linear_recurrence, linear_recurrence_p
from polyax.test_util import check_grads

RNG = np.random.default_rng(3)
A, B = RNG.uniform(-1, 1, (5, 7)), RNG.standard_normal((5, 7))


def wanted(a: Any, b: Any, axis: int, reverse: bool) -> Any:
    way = slice(None, None, -1 if reverse else 1)
    a, b = (np.moveaxis(np.asarray(x, np.result_type(x.dtype, np.float64)), axis, 0)[way] for x in (a, b))
    y = b.copy()
    for i in range(1, len(y)):
        y[i] += a[i] * y[i - 1]
    return np.moveaxis(y[way], 0, axis)


@pytest.mark.parametrize("axis, reverse", list(product((0, 1), (False, True))))
def test_values_are_those_of_a_loop(axis: int, reverse: bool) -> None:
    found = polyax.jit(lambda a, b: linear_recurrence(a, b, axis, reverse))(np.float32(A), np.float32(B))
    np.testing.assert_allclose(found, wanted(A, B, axis, reverse), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axis, reverse", list(product((0, 1), (False, True))))
def test_complex_numbers(axis: int, reverse: bool) -> None:
    a, b = A + 0.3j * A[::-1], B - 1j * B[:, ::-1]
    found = polyax.jit(lambda a, b: linear_recurrence(a, b, axis, reverse))(np.complex64(a), np.complex64(b))
    np.testing.assert_allclose(found, wanted(a, b, axis, reverse), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reverse", (False, True))
def test_derivatives_in_both_operands(reverse: bool) -> None:
    with polyax.enable_x64(True):
        check_grads(lambda a, b: linear_recurrence(a, b, 1, reverse), (A, B), order=2, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dims", [(0, 0), (1, 1), (0, None), (None, 1), (1, 0)])
def test_vmap_is_a_loop(dims: tuple[int | None, int | None]) -> None:
    operands = [RNG.standard_normal(shape).astype(np.float32) for shape in ((6, 6), (6, 6))]
    operands = [x if d is not None else x[0] for x, d in zip(operands, dims, strict=True)]
    found = polyax.vmap(lambda a, b: linear_recurrence(a, b, 0, True), dims)(*operands)
    for n in range(6):
        a, b = (x if d is None else np.take(x, n, d) for x, d in zip(operands, dims, strict=True))
        np.testing.assert_allclose(found[n], wanted(a, b, 0, True), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("reverse", (False, True))
def test_its_decomposition_means_the_same(reverse: bool) -> None:
    assert linear_recurrence_p.decompose is not None
    (found,) = linear_recurrence_p.decompose(np.float32(A), np.float32(B), axis=1, reverse=reverse)
    np.testing.assert_allclose(found, wanted(A, B, 1, reverse), rtol=1e-5, atol=1e-6)


def test_what_it_refuses() -> None:
    a = np.ones((2, 3), np.float32)
    with pytest.raises(TypeError, match=r"linear_recurrence does not accept dtype int32"):
        linear_recurrence(np.ones(3, np.int32), np.ones(3, np.int32))
    with pytest.raises(TypeError, match=r"of one dtype, got float32\[2,3\] and bfloat16\[2,3\]"):
        linear_recurrence(a, a.astype(polyax.numpy.bfloat16))
    with pytest.raises(ValueError, match=r"a factor for each summand, got float32\[2,3\] and float32\[3\]"):
        linear_recurrence(a, a[0])
    with pytest.raises(ValueError, match=r"axis 2 is out of bounds for array of shape \(2, 3\)"):
        linear_recurrence(a, a, 2)
