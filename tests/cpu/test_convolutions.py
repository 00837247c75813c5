"""Convolutions on the cpu: products of tiles, in all layouts, and the phases of dilated ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu.processor import in_many_registers, in_registers

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.ir.aval import ShapedArray
from polyax.ops.conv import conv_general_dilated_p
from polyax.runtime.contract.backend import CompileOptions
from polyax_cpu.convolutions import tiles
from polyax_cpu.libraries import registers

RNG = np.random.default_rng(0)
LAYOUTS = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW"), ("HWNC", "IHWO", "CHNW")
SHAPES = {"N": 4, "C": 16, "I": 16, "O": 24, "H": 11, "W": 9}
GEOMETRIES: tuple[dict[str, Any], ...] = (
    {"window_strides": (1, 1), "padding": "SAME"},
    {"window_strides": (2, 3), "padding": ((1, 2), (0, 3))},
    {"window_strides": (1, 1), "padding": "VALID", "rhs_dilation": (2, 3)},
    {"window_strides": (1, 2), "padding": ((2, 2), (1, 1)), "lhs_dilation": (2, 1)},
    {"window_strides": (2, 1), "padding": ((-1, 0), (0, -2))},
    {"window_strides": (3, 3), "padding": ((1, 0), (0, 0))},
    {"window_strides": (3, 3), "padding": ((0, 1), (0, 0))},
)


def _array(layout: str, window: int = 3) -> np.ndarray:
    sizes = SHAPES if "O" not in layout else {**SHAPES, "H": window, "W": window}
    return RNG.standard_normal([sizes[c] for c in layout]).astype(np.float32)


def _calls(f: Any, *args: Any) -> list[str]:
    """What the steps of the program are: kernels and library calls."""
    device = polyax.devices("cpu")[0]
    program = polyax.make_jaxpr(f)(*args)
    return [kernel.kind for kernel in device.backend.compile(program, CompileOptions(device)).report().kernels]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda names: "-".join(names))
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=range(len(GEOMETRIES)))
def test_equal_the_reference_with_their_gradients(layout: tuple[str, str, str], geometry: dict[str, Any]) -> None:
    x, w = _array(layout[0]), _array(layout[1])

    def f(x: Any, w: Any) -> Any:
        out = lax.conv_general_dilated(x, w, **geometry, dimension_numbers=layout)
        return (out**2).sum(), out

    results = []
    for platform in ("cpu", "reference"):
        with polyax.default_device(polyax.devices(platform)[0]):
            results.append(polyax.jit(polyax.value_and_grad(f, (0, 1), has_aux=True))(x, w))
    for got, wanted in zip(*map(polyax.tree.leaves, results), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=2e-3)


@pytest.mark.parametrize("stride, padding", [(2, (0, 10)), (1, (0, 0)), (1, (1, -1)), (2, (0, 0))])
def test_of_single_elements_equal_the_reference(stride: int, padding: tuple[int, int]) -> None:
    """Strides and padding may leave an operand its size, and take other elements of it."""
    x, w = _array("NHWC"), _array("HWIO", window=1)
    results = []
    for platform in ("cpu", "reference"):
        with polyax.default_device(polyax.devices(platform)[0]):
            f = polyax.jit(
                lambda x, w: lax.conv_general_dilated(
                    x, w, (stride, 1), (padding, (0, 0)), dimension_numbers=("NHWC", "HWIO", "NHWC")
                )
            )
            results.append(f(x, w))
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-4)


def test_of_windows_that_meet_equal_the_reference() -> None:
    """Each element is seen once, and yet moves: images are cut into tiles."""
    x, w = _array("NHWC")[:, :9], _array("HWIO")
    f = lambda x, w: lax.conv_general_dilated(x, w, (3, 3), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    with polyax.default_device(polyax.devices("cpu")[0]):
        got = polyax.jit(f)(x, w)
    np.testing.assert_allclose(
        got, np.einsum("nhiwjc,ijco->nhwo", x.reshape(4, 3, 3, 3, 3, 16), w), rtol=1e-4, atol=1e-4
    )


def _conv(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def test_of_single_elements_are_one_call() -> None:
    assert _calls(_conv, _array("NHWC"), _array("HWIO", window=1)) == ["call"]


@in_registers
def test_in_planes_are_two_calls() -> None:
    """One of them packs the weights."""
    assert _calls(_conv, _array("NHWC"), _array("HWIO")) == ["call", "call"]


@in_registers
@pytest.mark.parametrize("strides", [1, pytest.param(2, marks=in_many_registers)])
def test_of_channels_that_are_together_and_alone_are_one_call(strides: int) -> None:
    f = lambda x, w: lax.conv_general_dilated(
        x, w, (strides, strides), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=16
    )
    assert _calls(f, _array("NHWC"), _array("HWIO")[:, :, :1, :16]) == ["call"]


def _described(layout: tuple[str, str, str], window: int) -> tuple[int, tiles.Tiles]:
    avals = [ShapedArray(_array(name, window).shape, np.dtype("float32")) for name in layout[:2]]
    f = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout)
    (eqn,) = polyax.make_jaxpr(f)(*[jnp.zeros(a.shape, a.dtype) for a in avals]).jaxpr.eqns
    return tiles.describe(avals, conv_general_dilated_p.rule("abstract_eval")(*avals, **eqn.params), eqn.params)


@pytest.mark.parametrize("layout", LAYOUTS[:2], ids=lambda names: names[0])
def test_of_single_elements_read_the_operand_where_it_lies(layout: tuple[str, str, str]) -> None:
    """Its memory is a tile already."""
    assert _described(layout, window=1)[1].nbytes == 0 < _described(layout, window=3)[1].nbytes


def test_of_all_layouts_and_windows_are_one_function() -> None:
    assert len({_described(layout, window)[0] for layout in LAYOUTS for window in (1, 2, 3)}) == 1


@pytest.mark.parametrize("argument", [0, 1], ids=["operand", "window"])
@pytest.mark.parametrize("layout", LAYOUTS[:2], ids=lambda names: names[0])
def test_come_in_many_tiles(layout: tuple[str, str, str], argument: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows, and of a depth whose parts are added up."""
    x, w = _array(layout[0]), _array(layout[1])

    def f(x: Any, w: Any) -> Any:
        return (lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout) ** 2).sum()

    with polyax.default_device(polyax.devices("cpu")[0]):
        wanted = polyax.jit(polyax.grad(f, argument))(x, w)
        for name, size in (("ROWS", 7), ("ELEMENTS", 100), ("DEPTH", 13)):
            monkeypatch.setattr(tiles, name, size)
        got = polyax.jit(polyax.grad(lambda *args: f(*args), argument))(x, w)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("layout", LAYOUTS[:2], ids=lambda names: names[0])
def test_of_dilated_operands_meet_no_zeros(layout: tuple[str, str, str]) -> None:
    """Every second place sees the same elements of the window: four convolutions, or one whose weights are packed."""
    x, w = _array(layout[0]), _array(layout[1], window=4)
    f = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), ((2, 2), (2, 2)), (2, 2), dimension_numbers=layout)
    assert _calls(f, x, w).count("call") == (2 if registers.why_not() is None else 4)


@pytest.mark.parametrize("groups", [2, 4, 16])
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda names: "-".join(names))
def test_in_groups_equal_the_reference(layout: tuple[str, str, str], groups: int) -> None:
    x, w = _array(layout[0]), _array(layout[1])
    w = w.take(range(16 // groups), layout[1].index("I"))
    w = w.take(range(16), layout[1].index("O"))

    def f(x: Any, w: Any) -> Any:
        out = lax.conv_general_dilated(x, w, (1, 2), "SAME", dimension_numbers=layout, feature_group_count=groups)
        return (out**2).sum(), out

    _agree(polyax.value_and_grad(f, (0, 1), has_aux=True), x, w)


def _agree(f: Any, *args: Any) -> None:
    results = []
    for platform in ("cpu", "reference"):
        with polyax.default_device(polyax.devices(platform)[0]):
            results.append(polyax.tree.leaves(polyax.jit(f)(*args)))
    for got, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=5e-3)


@pytest.mark.parametrize("seed", range(40))
def test_of_any_kind_equal_the_reference(seed: int) -> None:
    """Layouts, strides, dilations, paddings, groups and types by chance, in one to three dimensions."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 4))
    specs = [tuple(map(int, rng.permutation(count + 2))) for _ in range(3)]
    groups = int(rng.choice([1, 1, 2, 3]))
    kind = ("feature_group_count", "batch_group_count")[int(rng.integers(2))]
    batch, channels, features = (int(rng.integers(1, 6)) for _ in range(3))
    window = rng.integers(1, 4, count)
    shapes = [0] * (count + 2), [0] * (count + 2)
    by_lhs = (batch * (groups if kind[0] == "b" else 1), channels * (groups if kind[0] == "f" else 1))
    for spec, shape, sizes in (
        (specs[0], shapes[0], (*by_lhs, *rng.integers(5, 9, count))),
        (specs[1], shapes[1], (features * groups, channels, *window)),
    ):
        for dim, size in zip(spec, sizes, strict=True):
            shape[dim] = int(size)
    dtype = str(rng.choice(["float32", "float64", "complex64"]))
    x, w = (
        (rng.standard_normal(s) + (1j * rng.standard_normal(s) if dtype[0] == "c" else 0)).astype(dtype) for s in shapes
    )
    several = lambda *values: tuple(int(rng.choice(values)) for _ in range(count))
    options: dict[str, Any] = {
        "window_strides": several(1, 1, 2, 3),
        "padding": [(int(a), int(b)) for a, b in rng.integers(-1, 4, (count, 2))],
        "lhs_dilation": several(1, 1, 2, 3),
        "rhs_dilation": several(1, 1, 2),
        "dimension_numbers": lax.ConvDimensionNumbers(*specs),
        kind: groups,
    }

    def f(x: Any, w: Any) -> Any:
        out = lax.conv_general_dilated(x, w, **options)
        return (abs(out) ** 2).sum(), out

    with polyax.enable_x64():
        _agree(polyax.value_and_grad(f, (0, 1), has_aux=True), x, w)


@pytest.mark.parametrize("layout", LAYOUTS[:2], ids=lambda names: names[0])
def test_of_many_channels_to_few_features_are_one_product(layout: tuple[str, str, str]) -> None:
    """Also where the operand is dilated: what overlaps is added up afterwards."""
    x, w = _array(layout[0]), _array(layout[1]).take(range(2), layout[1].index("O"))
    f = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), ((2, 2), (2, 2)), (2, 2), dimension_numbers=layout)
    assert _calls(f, x, w).count("call") == 1
    _agree(f, x, w)
