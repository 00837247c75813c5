"""Gradients of convolutions by weights on the cpu: sums of integers, which are exact, against NumPy in float64."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from cpu.guarded import at_the_end_of_a_page, run
from cpu.processor import in_registers

import polyax
from polyax import lax
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax.ir.jaxpr import Eqn
from polyax.ops.conv import conv_general_dilated_p
from polyax_cpu.convolutions import filters
from polyax_cpu.libraries import registers

RNG = np.random.default_rng(0)
FIRST, LAST = ("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")

pytestmark = in_registers


class Case(NamedTuple):
    images: int
    channels: int
    size: tuple[int, int]
    features: int
    window: int
    strides: int = 1
    dilation: int = 1
    groups: int = 1

    @property
    def pad(self) -> int:
        return (self.window - 1) * self.dilation // 2


CASES = [
    Case(4, 3, (12, 13), 16, 3),
    Case(9, 7, (20, 11), 40, 3, strides=2),
    Case(5, 8, (15, 15), 33, 2, dilation=2),
    Case(8, 20, (9, 10), 64, 1),
    Case(4, 64, (14, 14), 64, 3, groups=2),
    Case(8, 26, (30, 31), 17, 5, strides=3),
    Case(4, 25, (16, 16), 70, 3),
]


def _turned(x: np.ndarray, spec: str, to: str) -> np.ndarray:
    return np.ascontiguousarray(x.transpose([spec.index(letter) for letter in to]))


def _oracle(x: np.ndarray, g: np.ndarray, case: Case) -> np.ndarray:
    """Channels first: the sum over images and places of what the window saw and the cotangents, in float64."""
    behind = case.window * case.dilation + case.strides
    seen = np.pad(x.astype("float64"), ((0, 0), (0, 0), (case.pad, behind), (case.pad, behind)))
    split = lambda a: np.split(a, case.groups, axis=1)
    pairs = list(zip(split(seen), split(g.astype("float64")), strict=True))
    result = np.zeros((case.features, case.channels // case.groups, case.window, case.window))
    steps = [case.strides * n for n in g.shape[2:]]
    for i in range(case.window):
        for j in range(case.window):
            (a, b) = (n * case.dilation for n in (i, j))
            at = np.s_[:, :, a : a + steps[0] : case.strides, b : b + steps[1] : case.strides]
            result[:, :, i, j] = np.concatenate([np.einsum("nchw,nohw->oc", s[at], c) for s, c in pairs])
    return result


def _gradient(case: Case, layout: tuple[str, str, str], dtype: str) -> tuple[Any, tuple[np.ndarray, ...], np.ndarray]:
    """The function of operand, weights and cotangents, these, and what it is to give."""
    images, weights, results = layout
    padding, dilation = [(case.pad, case.pad)] * 2, (case.dilation,) * 2

    def convolution(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, (case.strides,) * 2, padding, rhs_dilation=dilation, dimension_numbers=layout,
            feature_group_count=case.groups,
        )  # fmt: skip

    x = RNG.integers(-3, 4, (case.images, case.channels, *case.size)).astype(dtype)
    w = np.zeros((case.features, case.channels // case.groups, case.window, case.window), dtype)
    given = _turned(x, "NCHW", images), _turned(w, "OIHW", weights)
    shape = polyax.eval_shape(convolution, *given).shape
    g = RNG.integers(-3, 4, shape).astype(dtype)
    wanted = _turned(_oracle(x, _turned(g, results, "NCHW"), case), "OIHW", weights)
    return lambda x, w, g: polyax.vjp(lambda w: convolution(x, w), w)[1](g)[0], (*given, g), wanted


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", [FIRST, LAST], ids="-".join)
@pytest.mark.parametrize("case", CASES)
def test_are_exact(case: Case, layout: tuple[str, str, str], dtype: str) -> None:
    with polyax.enable_x64(), polyax.default_device("cpu"):
        f, given, wanted = _gradient(case, layout, dtype)
        np.testing.assert_array_equal(polyax.jit(f)(*given), wanted)


def _convolution(case: Case, layout: tuple[str, str, str]) -> Eqn:
    f, given, _ = _gradient(case, layout, "float32")
    (eqn,) = (e for e in polyax.make_jaxpr(f)(*given).jaxpr.eqns[1:] if e.primitive is conv_general_dilated_p)
    return eqn


def _why_not(case: Case, layout: tuple[str, str, str] = LAST) -> str | None:
    eqn = _convolution(case, layout)
    return filters.why_not([v.aval for v in eqn.invars], eqn.params, 16)


@pytest.mark.parametrize("layout", [FIRST, LAST], ids="-".join)
@pytest.mark.parametrize("case", CASES)
def test_are_these(case: Case, layout: tuple[str, str, str]) -> None:
    assert _why_not(case, layout) is None


@pytest.mark.parametrize(
    "why, case, layout",
    [
        ("more places", Case(40, 8, (4, 4), 16, 5), LAST),
        ("little", Case(1, 8, (20, 20), 16, 3), LAST),
        ("little", Case(99, 8, (20, 3), 16, 1), LAST),
        ("are few", Case(4, 8, (20, 20), 7, 3), LAST),
        ("are few", Case(4, 8, (20, 20), 15, 3), FIRST),
        ("turning the window", Case(4, 1, (20, 20), 32, 3), FIRST),
    ],
)
def test_decline_with_a_reason(why: str, case: Case, layout: tuple[str, str, str]) -> None:
    assert why in str(_why_not(case, layout))


@pytest.mark.parametrize("band", [1, 5, 1000])
def test_touch_nothing_behind_their_arrays(band: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(3, 7, (21, 9), 20, 3, strides=2)
    x = RNG.integers(-3, 4, (case.channels, *case.size, case.images)).astype("float32")
    g = RNG.integers(-3, 4, (case.images, 11, 5, case.features)).astype("float32")
    params = {
        "dimension_numbers": lax.ConvDimensionNumbers((0, 3, 1, 2), (3, 0, 1, 2), (2, 3, 0, 1)),
        "window_strides": (1, 1), "rhs_dilation": (2, 2), "lhs_dilation": (1, 1), "padding": ((1, 1), (1, 1)),
        "feature_group_count": 1, "batch_group_count": 1, "precision": None, "preferred_element_type": None,
    }  # fmt: skip
    monkeypatch.setattr(filters, "ELEMENTS", band * (5 * case.features + 9 * case.channels))
    work = filters.described([ShapedArray(a.shape, a.dtype) for a in (x, g)], params, registers.lanes("float"))
    x, g, out = map(at_the_end_of_a_page, (x, g, np.full(work.shape, np.nan, "f")))
    run(filters.function("float", work.kind).address("convolve"), (x, g, out), work)
    wanted = _oracle(x.transpose(3, 0, 1, 2), g.transpose(0, 3, 1, 2), case)
    np.testing.assert_array_equal(out, wanted.transpose(2, 3, 1, 0))


def test_have_the_same_bits_on_any_number_of_threads() -> None:
    f, given, _ = _gradient(Case(4, 25, (16, 16), 70, 3), LAST, "float32")
    given = tuple(RNG.standard_normal(a.shape).astype("float32") for a in given)
    results = []
    for threads in (1, 2, 3):
        with config.override(num_threads=threads), polyax.default_device("cpu"):
            results.append(np.asarray(polyax.jit(lambda *args: f(*args))(*given)))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
