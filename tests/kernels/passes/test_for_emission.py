"""What kernels are before they are walked."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from kernels.building import axes, indices, one_store, result_of

from polyax_kernels.emit.numpy import run
from polyax_kernels.ir.expr import consing, const, load, op, postorder
from polyax_kernels.ir.kernel import kernel_roots
from polyax_kernels.passes.for_emission import widen


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_chosen_narrow_floats_keep_their_bits(dtype: str) -> None:
    """NaN, whatever its digits, and all else: nothing is rounded."""
    kind = np.dtype(dtype)
    arrays = [
        np.arange(1 << 16, dtype=np.uint16).view(kind),
        np.arange(1 << 16, dtype=np.uint16)[::-1].copy().view(kind),
    ]
    with consing():
        (i,) = indices(grid := axes(1 << 16))
        x, y = (load(n, kind, (i,)) for n in range(2))
        kernel = widen(one_store(grid, op("select", op("lt", i % 3, const(1)), x, y), arrays))
        assert not [x for x in postorder(*kernel_roots(kernel)) if x.kind == "cast"]
        out = result_of(kernel)
        run(kernel, [*arrays, out])
    want = np.where(np.arange(1 << 16) % 3 < 1, *(a.view(np.uint16) for a in arrays))
    np.testing.assert_array_equal(out.view(np.uint16), want)
