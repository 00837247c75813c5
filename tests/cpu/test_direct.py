"""Convolutions of channels and features that are together: sums of integers, which are exact, against NumPy."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
from cpu.guarded import at_the_end_of_a_page, run
from cpu.processor import in_many_registers

import polyax
from polyax import lax
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ops.conv import conv_general_dilated_p
from polyax_cpu.convolutions import direct, lowerings
from polyax_cpu.libraries import registers
from polyax_cpu.libraries.sums import SumsKind

RNG = np.random.default_rng(0)

pytestmark = in_many_registers


class Case(NamedTuple):
    size: tuple[int, ...]
    window: tuple[int, ...]
    channels: int = 16
    features: int = 40
    images: int = 3
    strides: int = 1
    dilation: int = 1
    pad: tuple[int, int] = (1, 1)


CASES = [
    Case((9, 11), (3, 3)),
    Case((8, 8), (2, 3), channels=17, features=64, images=4, strides=2, pad=(0, 1)),
    Case((12, 15), (3, 2), features=33, dilation=3, pad=(4, 2)),
    Case((12, 12), (5, 5), features=100, images=5, strides=3, pad=(2, 2)),
    Case((10, 10), (3, 3), pad=(-1, 2)),
    Case((6, 5), (9, 9), features=32, pad=(6, 6)),
    Case((70,), (4,), channels=20, features=48, pad=(3, 0)),
    Case((5, 6, 7), (3, 1, 2), features=32, pad=(1, 0)),
]
FIRST = lax.ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 1, 2, 3))
LAST = {1: ("NHC", "HIO"), 2: ("NHWC", "HWIO"), 3: ("NDHWC", "DHWIO")}


def _arrays(case: Case, weights: str, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    x = RNG.integers(-3, 4, (case.images, *case.size, case.channels)).astype(dtype)
    w = RNG.integers(-3, 4, (*case.window, case.channels, case.features)).astype(dtype)
    return x, np.ascontiguousarray(w.transpose([LAST[len(case.size)][1].index(letter) for letter in weights]))


def _oracle(x: np.ndarray, w: np.ndarray, case: Case) -> np.ndarray:
    """Weights with features last; negative padding cuts."""
    low, high = case.pad
    dims = range(1, x.ndim - 1)
    for d in dims:
        x = x.take(range(max(-low, 0), x.shape[d] - max(-high, 0)), d)
    wide = np.pad(x.astype("float64"), [(0, 0), *[(max(low, 0), max(high, 0))] * len(dims), (0, 0)])
    places = [(wide.shape[d] - (case.window[d - 1] - 1) * case.dilation - 1) // case.strides + 1 for d in dims]
    total = np.zeros((x.shape[0], *places, w.shape[-1]))
    for at in itertools.product(*map(range, case.window)):
        first = [n * case.dilation for n in at]
        seen = tuple(slice(f, f + (p - 1) * case.strides + 1, case.strides) for f, p in zip(first, places, strict=True))
        total += wide[(slice(None), *seen)] @ w[at].astype("float64")
    return total


def _convolution(case: Case, weights: str) -> Any:
    n = len(case.size)
    return lambda x, w: lax.conv_general_dilated(
        x, w, (case.strides,) * n, (case.pad,) * n, rhs_dilation=(case.dilation,) * n,
        dimension_numbers=(LAST[n][0], weights, LAST[n][0]),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_are_exact(case: Case, dtype: str) -> None:
    last = LAST[len(case.size)][1]
    with polyax.enable_x64(), polyax.default_device("cpu"):
        for weights in (last, "OI" + last[:-2]):
            x, w = _arrays(case, weights, dtype)
            got = polyax.jit(_convolution(case, weights))(x, w)
            turned = w.transpose([weights.index(letter) for letter in last])
            np.testing.assert_array_equal(got, _oracle(x, turned, case))


def _given(case: Case, weights: str, **other: Any) -> tuple[list[ShapedArray], dict[str, Any]]:
    arrays = _arrays(case, weights, "float32")
    (eqn,) = polyax.make_jaxpr(_convolution(case, weights))(*arrays).jaxpr.eqns
    assert eqn.primitive is conv_general_dilated_p
    return [ShapedArray(a.shape, a.dtype) for a in arrays], {**eqn.params, **other}


@pytest.mark.parametrize("case", CASES)
def test_are_these(case: Case) -> None:
    avals, params = _given(case, LAST[len(case.size)][1])
    program = lowerings.programs(tuple(avals), tuple(params.items()))
    assert lowerings.direct_p in {eqn.primitive for eqn in program.jaxpr.eqns}


@pytest.mark.parametrize(
    "why, case, other",
    [
        ("aren't enough", Case((9, 9), (3, 3), channels=15), {}),
        ("aren't enough", Case((9, 9), (3, 3), features=31), {}),
        ("or too many", Case((9, 9), (1, 2), channels=5000), {}),
        ("few places", Case((9, 3), (3, 3)), {}),
        ("few places", Case((4, 9), (3, 3), images=1), {}),
        ("groups", Case((9, 9), (3, 3)), {"feature_group_count": 2}),
        ("dilated", Case((9, 9), (3, 3)), {"lhs_dilation": (2, 1)}),
        ("together", Case((9, 9), (3, 3)), {"dimension_numbers": FIRST}),
    ],
)  # fmt: skip
def test_decline_with_a_reason(why: str, case: Case, other: dict[str, Any]) -> None:
    avals, params = _given(case, "HWIO")
    params.update(other)
    if "feature_group_count" in other:
        avals[1] = ShapedArray((*case.window, case.channels // 2, case.features), np.dtype("float32"))
    assert why in str(direct.why_not(avals, params, 16))


@pytest.mark.parametrize("case", CASES)
def test_touch_nothing_behind_their_arrays(case: Case) -> None:
    weights = LAST[len(case.size)][1]
    avals, params = _given(case, weights)
    work = direct.described(avals, params, registers.lanes("float"))
    x, w = _arrays(case, weights, "float32")
    x, w, out = map(at_the_end_of_a_page, (x, w, np.full(work.shape, np.nan, "f")))
    run(direct.function("float", work.kind).address("convolve"), (x, w, out), work)
    np.testing.assert_array_equal(out, _oracle(x, w, case))


def test_have_the_same_bits_on_any_number_of_threads() -> None:
    case = Case((20, 20), (3, 3), channels=32, features=64)
    x, w = (RNG.standard_normal(a.shape).astype("float32") for a in _arrays(case, "HWIO", "float32"))
    results = []
    for threads in (1, 2, 3):
        with config.override(num_threads=threads), polyax.default_device("cpu"):
            results.append(np.asarray(polyax.jit(_convolution(case, "HWIO"))(x, w)))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_places_fill_the_registers() -> None:
    avals, params = _given(Case((9, 14), (3, 3), features=256), "HWIO")
    assert direct.described(avals, params, 16).kind == SumsKind(7, 2, whole=True)
