"""Convolutions as cuDNN is asked for them: sizes and strides say what the dimension numbers said; and when it isn't."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
from polyax import lax
from polyax.ir.aval import ShapedArray
from polyax.ops.conv import conv_general_dilated_p
from polyax.reference.interpreter import run_on_host
from polyax_cuda import convolution
from polyax_kernels.gpu.cuda_like.convolutions import Layout, channels_last, describe, is_packed

LAYOUTS = [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("CHWN", "IHWO", "NHWC")]
NAMED = {"N": 2, "C": 4, "H": 9, "W": 7, "O": 6}


def arrays(layout: tuple[str, str, str], groups: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    x = rng.standard_normal([NAMED[c] for c in layout[0]])
    window = {"O": 6, "I": 4 // groups, "H": 3, "W": 2}
    return x.astype(np.float32), rng.standard_normal([window[c] for c in layout[1]]).astype(np.float32)


def seen(x: np.ndarray, layout: Layout) -> np.ndarray:
    sizes, strides = layout
    return np.lib.stride_tricks.as_strided(x, sizes, [4 * s for s in strides])


@pytest.mark.parametrize("layout", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("groups", [1, 2])
def test_strides_say_what_dimension_numbers_say(layout: tuple[str, str, str], groups: int) -> None:
    """The convolution in cuDNN's order, on what it sees, is ours in the result's order."""
    x, w = arrays(layout, groups)
    fun = lambda x, w: lax.conv_general_dilated(
        x, w, (2, 1), ((1, 0), (0, 2)), rhs_dilation=(1, 2), dimension_numbers=layout, feature_group_count=groups
    )
    params: Any = polyax.make_jaxpr(fun)(x, w).jaxpr.eqns[0].params
    (want,) = run_on_host(conv_general_dilated_p, [x, w], params)
    asked = describe([ShapedArray(a.shape, a.dtype) for a in (x, w)], params)
    plain = lax.conv_dimension_numbers((1, 1, 1, 1), (1, 1, 1, 1), ("NCHW", "OIHW", "NCHW"))
    padding = tuple(zip(asked.before, asked.after, strict=True))
    moved = {"window_strides": asked.stride, "padding": padding, "rhs_dilation": asked.dilation}
    operands = [seen(a, o) for a, o in zip((x, w), (asked.x, asked.window), strict=True)]
    (got,) = run_on_host(conv_general_dilated_p, operands, params | moved | {"dimension_numbers": plain})
    np.testing.assert_allclose(got, seen(want, asked.out), rtol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS[:2], ids="-".join)
def test_windows_lie_as_arrays_do(layout: tuple[str, str, str]) -> None:
    """Features first or last in all three: cuDNN gives wrong numbers for others, and doesn't refuse them."""
    x, w = arrays(layout)
    fun = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout)
    params: Any = polyax.make_jaxpr(fun)(x, w).jaxpr.eqns[0].params
    asked = describe([ShapedArray(a.shape, a.dtype) for a in (x, w)], params)
    found, order = convolution.arranged(asked, params["dimension_numbers"][1])
    last = layout[0].endswith("C")
    assert channels_last(found) == last
    assert is_packed(found.window, channels_last=last)
    moved = w if order is None else np.ascontiguousarray(w.transpose(order))
    np.testing.assert_array_equal(seen(moved, found.window), seen(w, asked.window))
    assert (order is not None) == last


def test_mixed_layouts_are_left_to_tiles() -> None:
    x, w = arrays(LAYOUTS[2])
    fun = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=LAYOUTS[2])
    params: Any = polyax.make_jaxpr(fun)(x, w).jaxpr.eqns[0].params
    assert channels_last(describe([ShapedArray(a.shape, a.dtype) for a in (x, w)], params)) is None


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"lhs_dilation": (2, 1)}, "forward"),
        ({"padding": ((-1, 0), (0, 0))}, "negative"),
        ({"preferred_element_type": np.float64}, "cuDNN is called for one of"),
    ],
)
def test_what_is_left_to_tiles(options: dict[str, Any], reason: str) -> None:
    x, w = arrays(LAYOUTS[0])
    fun = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID")
    params = polyax.make_jaxpr(fun)(x, w).jaxpr.eqns[0].params | options
    assert reason in str(convolution.why_not([ShapedArray(a.shape, a.dtype) for a in (x, w)], params))
