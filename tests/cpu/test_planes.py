"""Convolutions in planes on the cpu, against NumPy in float64."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from cpu.guarded import at_the_end_of_a_page, run
from cpu.processor import in_registers

import polyax
from polyax import lax
from polyax.ir.aval import ShapedArray
from polyax.ir.config import config
from polyax_cpu.convolutions import blocks, depthwise, lowerings, planes
from polyax_cpu.convolutions.planes import Shapes
from polyax_cpu.libraries import registers

RNG = np.random.default_rng(0)
SPECS = {
    1: [("NCW", "OIW", "NCW"), ("NWC", "WIO", "NWC"), ("NCW", "WIO", "NWC")],
    2: [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("HWNC", "OHWI", "CNHW"), ("NCHW", "OIHW", "NCWH")],
    3: [("NCDHW", "OIDHW", "NCDHW"), ("NDHWC", "DHWIO", "NDHWC")],
}
GEOMETRIES: tuple[dict[str, Any], ...] = (
    {},
    {"strides": 2},
    {"strides": 3, "padding": (1, 0)},
    {"dilation": 2},
    {"dilation": 3, "strides": 2, "padding": (4, 5)},
    {"padding": (-1, 2)},
    {"window": 1, "strides": 2},
    {"window": 4, "padding": (5, 5)},
)


def _oracle(x: np.ndarray, w: np.ndarray, strides: int, padding: tuple[int, int], dilation: int, groups: int) -> Any:
    """Batch and features first: the sum over the window of products of matrices, in float64."""
    x, w, n = x.astype(float), w.astype(float), x.ndim - 2
    low, high = padding
    x = np.pad(x, [(0, 0), (0, 0), *[(max(0, low), max(0, high))] * n])
    x = x[(..., *[slice(max(0, -low), s - max(0, -high)) for s in x.shape[2:]])]
    places = [(s - (k - 1) * dilation - 1) // strides + 1 for s, k in zip(x.shape[2:], w.shape[2:], strict=True)]
    result = np.zeros((x.shape[0], w.shape[0], *places))
    channels, features = w.shape[1], w.shape[0] // groups
    for g, element in itertools.product(range(groups), np.ndindex(*w.shape[2:])):
        starts = [k * dilation for k in element]
        seen = x[(..., *[slice(s, s + (m - 1) * strides + 1, strides) for s, m in zip(starts, places, strict=True)])]
        mine = slice(g * features, (g + 1) * features)
        own = seen[:, g * channels : (g + 1) * channels]
        result[:, mine] += np.einsum("nc...,oc->no...", own, w[(mine, slice(None), *element)])
    return result


def _turned(x: np.ndarray, first: str, spec: str) -> np.ndarray:
    return np.ascontiguousarray(x.transpose([first.index(c) for c in spec]))


def _case(
    sizes: Sequence[int], spec: tuple[str, str, str], dtype: str = "float32", batch: int = 2, channels: int = 3,
    features: int = 5, groups: int = 1, window: int = 3, strides: int = 1, padding: tuple[int, int] = (1, 1),
    dilation: int = 1,
) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The convolution, its operands, and what it is to give."""
    n = len(sizes)
    letters = "DHW"[3 - n :]
    first = "NC" + letters, "OI" + letters, "NC" + letters
    x = RNG.integers(-4, 5, (batch, channels * groups, *sizes)).astype(dtype)
    w = RNG.integers(-4, 5, (features * groups, channels, *[window] * n)).astype(dtype)
    wanted = _oracle(x, w, strides, padding, dilation, groups)

    def f(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, [strides] * n, [padding] * n, rhs_dilation=[dilation] * n, dimension_numbers=spec,
            feature_group_count=groups,
        )  # fmt: skip

    arrays = [_turned(a, old, new) for a, old, new in zip((x, w, wanted), first, spec, strict=True)]
    return f, *arrays


def _in_planes(f: Any, x: Any, w: Any) -> bool:
    (eqn,) = polyax.make_jaxpr(f)(x, w).jaxpr.eqns
    return planes.why_not([ShapedArray(a.shape, a.dtype) for a in (x, w)], eqn.params) is None


def _is_exact(f: Any, x: np.ndarray, w: np.ndarray, wanted: np.ndarray) -> None:
    """Sums of small integers are exact, in whatever order."""
    with polyax.default_device("cpu"):
        np.testing.assert_array_equal(polyax.jit(f)(x, w), wanted)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=range(len(GEOMETRIES)))
@pytest.mark.parametrize("spec", [s for every in SPECS.values() for s in every], ids="-".join)
def test_are_exact_in_all_layouts(spec: tuple[str, str, str], geometry: dict[str, Any]) -> None:
    _is_exact(*_case((9, 13, 11)[: len(spec[0]) - 2], spec, **geometry))


@pytest.mark.parametrize("features", [1, 2, 3, 4, 5, 7, 8, 9, 13, 17])
@pytest.mark.parametrize("spec", SPECS[2][:2], ids="-".join)
@pytest.mark.parametrize("groups", [1, 3])
def test_of_any_number_of_features_are_exact(features: int, spec: tuple[str, str, str], groups: int) -> None:
    f, x, w, wanted = _case((10, 19), spec, features=features, groups=groups)
    assert _in_planes(f, x, w)
    _is_exact(f, x, w, wanted)


@pytest.mark.parametrize("channels", [1, 2, 8, 15, 16, 17, 33])
@pytest.mark.parametrize("spec", SPECS[2][:2], ids="-".join)
def test_of_any_number_of_channels_are_exact(channels: int, spec: tuple[str, str, str]) -> None:
    _is_exact(*_case((10, 19), spec, channels=channels, batch=1))


@pytest.mark.parametrize("size", [*range(1, 8), 15, 16, 17, 31, 47, 48, 49, 63, 64, 65, 127, 128, 129, 1000])
def test_of_rows_of_any_length_are_exact(size: int) -> None:
    """One row, and one column."""
    for sizes in ((1, size), (size, 1)):
        _is_exact(*_case(sizes, SPECS[2][0], batch=70, features=2))
        _is_exact(*_case(sizes, SPECS[2][1], batch=70, features=2))


@pytest.mark.parametrize("spec", SPECS[2][:2], ids="-".join)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_of_both_types_are_exact(spec: tuple[str, str, str], dtype: str) -> None:
    with polyax.enable_x64():
        _is_exact(*_case((21, 18), spec, dtype, channels=20, features=12))


@pytest.mark.parametrize("spec", [*SPECS[2][:2], *SPECS[3]], ids="-".join)
def test_of_many_parts_are_exact(spec: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planes, "ELEMENTS", 1000)
    sizes = (7, 12, 11)[: len(spec[0]) - 2]
    for geometry in GEOMETRIES:
        lowerings.programs.cache_clear()
        _is_exact(*_case(sizes, spec, **geometry))
    lowerings.programs.cache_clear()


@pytest.mark.parametrize("spec", SPECS[2][:2], ids="-".join)
def test_are_close_to_sums_in_twice_the_precision(spec: tuple[str, str, str]) -> None:
    f, x, w, _ = _case((14, 14), spec, channels=64, features=16)
    x, w = (RNG.standard_normal(a.shape).astype("float32") for a in (x, w))
    first = _turned(x, spec[0], "NCHW"), _turned(w, spec[1], "OIHW")
    wanted = _turned(_oracle(*first, 1, (1, 1), 1, 1), "NCHW", spec[2])
    with polyax.default_device("cpu"):
        np.testing.assert_allclose(polyax.jit(f)(x, w), wanted, atol=2e-6 * np.abs(wanted).max())


def test_have_the_same_bits_on_any_number_of_threads() -> None:
    f, x, w, _ = _case((40, 41), SPECS[2][0], channels=8, features=24)
    x, w = (RNG.standard_normal(a.shape).astype("float32") for a in (x, w))
    results = []
    for threads in (1, 2, 3):
        with config.override(num_threads=threads), polyax.default_device("cpu"):
            results.append(np.asarray(polyax.jit(lambda x, w: f(x, w))(x, w)))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize("channels", [8, 16, 17, 40, 64, 65, 130])
@pytest.mark.parametrize(
    "geometry",
    [
        {},
        {"dilation": 2},
        {"strides": 2},
        {"strides": 3, "padding": (0, 4)},
        {"padding": (-1, 2)},
        {"window": 4, "padding": (5, 5)},
        {"window": 7, "strides": 2, "dilation": 3, "padding": (9, 12)},
    ],
    ids=str,
)
@pytest.mark.parametrize("spec", [SPECS[1][1], SPECS[2][1], SPECS[3][1]], ids="-".join)
def test_of_each_channel_alone_are_exact(spec: tuple[str, str, str], geometry: dict[str, Any], channels: int) -> None:
    sizes = (5, 9, 11)[-(len(spec[0]) - 2) :]
    f, x, w, wanted = _case(sizes, spec, channels=1, features=1, groups=channels, **geometry)
    (eqn,) = polyax.make_jaxpr(f)(x, w).jaxpr.eqns
    assert depthwise.why_not([ShapedArray(a.shape, a.dtype) for a in (x, w)], eqn.params, 16) is None
    _is_exact(f, x, w, wanted)


def test_of_each_channel_alone_are_exact_whatever_the_weights_layout() -> None:
    for weights in ("OIHW", "IHWO", "HWOI"):
        for dtype in ("float32", "float64"):
            with polyax.enable_x64():
                _is_exact(*_case((12, 13), ("NHWC", weights, "NHWC"), dtype, channels=1, features=1, groups=24))


@pytest.mark.parametrize("spec", SPECS[2][:2], ids="-".join)
@pytest.mark.parametrize("features", [1, 2, 4, 9])
@pytest.mark.parametrize("strides", [1, 2])
def test_touch_nothing_behind_their_arrays(spec: tuple[str, str, str], features: int, strides: int) -> None:
    f, x, w, wanted = _case((9, 17), spec, features=features, strides=strides)
    (eqn,) = polyax.make_jaxpr(f)(x, w).jaxpr.eqns
    shapes, block = Shapes([ShapedArray(a.shape, a.dtype) for a in (x, w)], eqn.params), blocks.of("float", features)
    packing = planes.packed(shapes, block.features)
    work = planes.described(shapes, block, 4)
    x, w, packed, out = map(at_the_end_of_a_page, (x, w, np.zeros(packing.shape, "f"), np.zeros(wanted.shape, "f")))
    run(blocks.packing("float", block.features).address("pack"), (w, packed), packing)
    kind = blocks.BlockKind("float", block.features, *work.together)
    run(blocks.function(kind).address("convolve"), (x, packed, out), work)
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("strides", [1, 2])
@pytest.mark.parametrize("channels", [8, 24, 66])
def test_of_each_channel_alone_touch_nothing_behind_their_arrays(channels: int, strides: int) -> None:
    f, x, w, wanted = _case((7, 23), SPECS[2][1], channels=1, features=1, groups=channels, strides=strides)
    (eqn,) = polyax.make_jaxpr(f)(x, w).jaxpr.eqns
    work = depthwise.described([ShapedArray(a.shape, a.dtype) for a in (x, w)], eqn.params)
    x, w, out = map(at_the_end_of_a_page, (x, w, np.zeros(wanted.shape, "f")))
    run(depthwise.function("float", work.kind).address("convolve"), (x, w, out), work)
    np.testing.assert_array_equal(out, wanted)


@in_registers
def test_of_each_channel_alone_share_one_mask_at_the_ends_of_rows() -> None:
    """That of channels. A mask for each place made branches of loads, which took three times as long."""
    text = depthwise.code("float", depthwise.WindowLine(3, 1, 1))
    loads = [line for line in text.splitlines() if "call" in line and "@llvm.masked.load" in line]
    assert len(loads) == 3 + depthwise.in_registers().places + 2  # weights, and what they see
    lanes = registers.lanes("float")
    assert len({line.split(f"<{lanes} x i1> ")[-1].split(",")[0] for line in loads}) == 1


@pytest.mark.parametrize(
    "why, options",
    [
        ("needs no planes", {"window": 1}),
        ("nothing is added up", {"batch": 0}),
        ("packing weights", {"batch": 1, "sizes": (5, 5)}),
        ("are few", {"window": 20, "padding": (0, 0), "sizes": (30, 30)}),
    ],
)
def test_decline_with_a_reason(why: str, options: dict[str, Any]) -> None:
    f, x, w, _ = _case(options.pop("sizes", (9, 9)), SPECS[2][0], **options)
    (eqn,) = polyax.make_jaxpr(f)(x, w).jaxpr.eqns
    assert why in str(planes.why_not([ShapedArray(a.shape, a.dtype) for a in (x, w)], eqn.params))


def test_of_other_types_decline() -> None:
    avals = [ShapedArray((2, 3, 9, 9), np.dtype("complex64"))] * 2
    assert "registers hold no complex64" in str(lowerings.why_no_planes(avals, {}))
