"""Phases of convolutions along one dimension, against the sum over all of the window."""

from __future__ import annotations

from itertools import product

import pytest

from polyax_kernels.lower.phases import count, phase


@pytest.mark.parametrize("window", [1, 2, 5])
@pytest.mark.parametrize("low", [-2, 0, 3])
def test_all_that_meets_an_element_is_in_one_phase(window: int, low: int) -> None:
    """Which elements of the window meet which of the operand, at every place of the result."""
    for stride, lhs_dilation, rhs_dilation in product((1, 2, 3), (1, 2, 3, 4), (1, 2, 3)):
        phases = count(stride, lhs_dilation)
        for place in range(4 * phases):
            seen = [(k, place * stride + k * rhs_dilation - low) for k in range(window)]
            wanted = {(k, at // lhs_dilation) for k, at in seen if at % lhs_dilation == 0}
            p = phase(place % phases, window, stride, low, lhs_dilation, rhs_dilation)
            taken = range(p.first, window, p.step) if p else ()
            start = place // phases * p.stride - p.low if p else 0
            assert {(k, start + n * p.dilation) for n, k in enumerate(taken) if p} == wanted
