"""Floats to integers at the edges of their ranges, as what kernels mean, in lanes and alone."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from cpu.test_emitter import outcomes
from cpu.test_lanes import rows

from polyax_cpu import kernels
from polyax_kernels.ir.expr import Axis, cast, consing, index, load

FLOATS = ["float16", ml_dtypes.bfloat16, "float32", "float64"]
WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


def edges(real: np.dtype) -> np.ndarray:
    """Numbers on both sides of each end of each range, those between two integers, and what is no number."""
    ends = [float(n) for dtype in WHOLE for n in (np.iinfo(dtype).min, np.iinfo(dtype).max)]
    with np.errstate(over="ignore"):
        near = np.array([e + d for e in ends for d in (-1, -0.5, 0, 0.5, 1)] + [0.0, -0.0, 0.99, -0.99], np.float64)
        bits = np.uint16 if real.itemsize == 2 else np.uint32 if real.itemsize == 4 else np.uint64
        found = near.astype(real)
        ones = bits(1)
        up, down = ((found.view(bits) + ones).view(real), (found.view(bits) - ones).view(real))
    return np.concatenate([found, up, down, np.array([np.inf, -np.inf, np.nan, -np.nan]).astype(real)])


@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize("real", FLOATS, ids=lambda d: np.dtype(d).name)
def test_edges_of_ranges(real: str, whole: str) -> None:
    kind = np.dtype(real)
    data = edges(kind)
    for count in (len(data), 1):
        for part in (data,) if count > 1 else data.reshape(-1, 1)[::7]:
            with consing():
                axis = Axis(count)
                value = cast(load(0, kind, (index(axis),)), whole)
                got, expected = outcomes(rows(count, value, [kind], (axis,)), [part])
            np.testing.assert_array_equal(got, expected, err_msg=str(part))


@pytest.mark.parametrize("whole", WHOLE)
def test_lanes_are_not_taken_one_by_one(whole: str) -> None:
    with consing():
        axis = Axis(1000)
        text = kernels.source(
            rows(1000, cast(load(0, "float32", (index(axis),)), whole), [np.dtype("float32")], (axis,))
        )
    assert "fpto" in text and "sat" not in text
