"""Convolutions as products, on an OpenCL device: layouts, strides, dilations, paddings and groups, against NumPy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from polyax.ir.aval import ShapedArray
from polyax.ops.conv import conv_general_dilated_p
from polyax.ops.conv_shapes import conv_dimension_numbers
from polyax.reference.rules_conv import conv_general_dilated as reference
from polyax_kernels.gpu.products import convolve, multiply, panels, tiles
from polyax_kernels.ir.limits import Limits
from support.launching import run

F32 = np.dtype("float32")
TILES = {"panels": panels.candidates(Limits())[0], "tiles": tiles.SMALLEST}
NHWC = ("NHWC", "HWIO", "NHWC")
CASES: dict[str, Any] = {
    "plain": ((2, 3, 9, 10), (5, 3, 3, 3), {}),
    "one dimension": ((2, 3, 19), (5, 3, 4), {}),
    "three dimensions": ((2, 3, 5, 6, 7), (4, 3, 2, 3, 2), {"padding": ((1, 0), (1, 1), (0, 1))}),
    "features last": ((2, 9, 10, 3), (3, 3, 3, 5), {"numbers": NHWC, "padding": ((1, 1), (1, 1))}),
    "features first": ((3, 9, 10, 2), (3, 3, 3, 5), {"numbers": ("CHWN", "HWIO", "CHWN")}),
    "features in the middle": ((9, 2, 10, 3), (3, 3, 3, 5), {"numbers": ("HNWC", "HWIO", "HCNW")}),
    "window of one": ((2, 9, 10, 8), (1, 1, 8, 5), {"numbers": NHWC}),
    "window of one with strides": ((2, 9, 10, 8), (1, 1, 8, 5), {"numbers": NHWC, "window_strides": (2, 3)}),
    "strides": ((2, 3, 9, 10), (5, 3, 3, 3), {"window_strides": (2, 3), "padding": ((1, 2), (0, 1))}),
    "dilated window": ((2, 3, 9, 10), (5, 3, 3, 3), {"rhs_dilation": (2, 3), "padding": ((2, 2), (3, 3))}),
    "dilated operand": ((2, 3, 5, 6), (5, 3, 3, 3), {"lhs_dilation": (2, 3), "padding": ((1, 2), (3, 0))}),
    "negative padding": ((2, 3, 9, 10), (5, 3, 3, 3), {"padding": ((-1, 2), (3, -2))}),
    "feature groups": ((2, 6, 9, 10), (8, 3, 3, 3), {"feature_group_count": 2, "padding": ((1, 1), (1, 1))}),
    "feature groups, features last": ((2, 9, 10, 6), (3, 3, 3, 8), {"numbers": NHWC, "feature_group_count": 2}),
    "batch groups": ((4, 3, 9, 10), (6, 3, 3, 3), {"batch_group_count": 2}),
    "batch groups, features last": ((4, 9, 10, 3), (3, 3, 3, 6), {"numbers": NHWC, "batch_group_count": 2}),
}


def parameters(x: tuple[int, ...], w: tuple[int, ...], numbers: Any = None, **changed: Any) -> dict[str, Any]:
    n = len(x) - 2
    return {
        "window_strides": (1,) * n, "padding": ((0, 0),) * n, "lhs_dilation": (1,) * n, "rhs_dilation": (1,) * n,
        "feature_group_count": 1, "batch_group_count": 1, "precision": None, "preferred_element_type": None,
        "dimension_numbers": conv_dimension_numbers(x, w, numbers),
    } | changed  # fmt: skip


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("name", CASES)
def test_convolution(opencl: SimpleNamespace, name: str, tile: str) -> None:
    x_shape, w_shape, changed = CASES[name]
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(F32) for s in (x_shape, w_shape))
    params = parameters(x_shape, w_shape, **changed)
    avals = [ShapedArray(a.shape, F32) for a in (x, w)]
    (out,) = conv_general_dilated_p.abstract_eval(*avals, **params)
    product = convolve.describe(avals, out, params)
    launches = multiply.launches(opencl, product, TILES[tile])
    found = run(opencl.runtime, launches, [(x, w)[n] for n in product.order], out)
    want = reference(x.astype(float), w.astype(float), **params)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_windows_that_are_never_left_are_plain_dimensions() -> None:
    x, w = (8, 9, 10, 16), (1, 1, 16, 32)
    params = parameters(x, w, NHWC)
    out = ShapedArray((8, 9, 10, 32), F32)
    product = convolve.describe([ShapedArray(s, F32) for s in (x, w)], out, params)
    assert not product.left.windows
    assert [(d.size, d.step) for d in product.left.lanes] == [(720, 16)]


@pytest.mark.parametrize(
    "x, w, changed, part",
    [
        ((4, 32, 32, 32), (32, 1, 3, 3), {"feature_group_count": 32}, "few rows"),
        ((0, 3, 9, 10), (5, 3, 3, 3), {}, "empty"),
        ((4, 32, 32, 32), (32, 32, 3, 3), {}, None),
    ],
)
def test_what_is_left_to_kernels(x: Any, w: Any, changed: Any, part: str | None) -> None:
    reason = convolve.CONVOLUTION.why_not([ShapedArray(s, F32) for s in (x, w)], parameters(x, w, **changed))
    assert reason is None if part is None else reason is not None and part in reason
