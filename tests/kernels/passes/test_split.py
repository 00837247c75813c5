"""Large folds are cut into chunks, of equal size where that can be."""

from __future__ import annotations

import numpy as np
import pytest

from polyax_kernels.ir.expr import Axis, Expr, consing, const, fold, index, load
from polyax_kernels.ir.limits import Limits
from polyax_kernels.passes.split import chunks

F32 = np.dtype("float32")
LIMITS = Limits()


def total(*shape: int) -> Expr:
    """The sum over all elements of an array."""
    axes = tuple(Axis(n) for n in shape)
    return fold("add", axes, (const(0.0, F32),), (load(0, F32, tuple(index(a) for a in axes)),))


@pytest.mark.parametrize("shape", [(500, 500), (250_000,), (1000, 1000), (3 * 7 * 11 * 1000,)])
def test_chunks_leave_nothing_where_they_can_be_equal(shape: tuple[int, ...]) -> None:
    with consing():
        n = chunks(total(*shape), 1, LIMITS)
    assert n > 1
    assert shape[0] % n == 0
    assert int(np.prod(shape)) // n >= LIMITS.split_elements // 2


def test_chunks_of_what_has_no_divisors_are_as_many_as_wanted() -> None:
    prime = 1_000_003
    with consing():
        assert chunks(total(prime), 1, LIMITS) == prime // LIMITS.split_elements


@pytest.mark.parametrize("extent", [2, 1000, LIMITS.split_elements])
def test_small_folds_stay_whole(extent: int) -> None:
    with consing():
        assert chunks(total(extent), 1, LIMITS) < 2
