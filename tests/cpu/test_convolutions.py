"""Convolutions on the cpu: products of patches, in all layouts, and in pieces where patches take much memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.runtime.contract.backend import CompileOptions
from polyax_kernels.lower import patches

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


def test_are_one_kernel_and_one_product() -> None:
    assert _calls(_conv, _array("NHWC"), _array("HWIO")) == ["kernel", "call"]


def test_of_single_elements_are_products_alone() -> None:
    assert _calls(_conv, _array("NHWC"), _array("HWIO", window=1)) == ["call"]


def test_of_few_features_stay_loops() -> None:
    assert _calls(_conv, _array("NHWC")[..., :1], _array("HWIO", window=2)[:, :, :1]) == ["kernel"]


@pytest.mark.parametrize("argument", [0, 1], ids=["operand", "window"])
def test_come_in_pieces_when_patches_are_large(argument: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = _array("NHWC"), _array("HWIO")
    f = polyax.grad(lambda *args: (_conv(*args) ** 2).sum(), argument)
    with polyax.default_device(polyax.devices("cpu")[0]):
        wanted = polyax.jit(f)(x, w)
        monkeypatch.setattr(patches, "PIECE", 11 * 9 * 9 * 16 * 2)
        patches._program.cache_clear()
        got = polyax.jit(lambda *args: f(*args))(x, w)
    assert "loop" in _calls(f, x, w)
    patches._program.cache_clear()
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-3)


def test_groups_stay_loops() -> None:
    x, w = _array("NHWC"), _array("HWIO")[:, :, :8]

    def f(x: Any, w: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers, feature_group_count=2)

    assert _calls(f, x, w) == ["kernel"]
    with polyax.default_device("reference"):
        wanted = f(jnp.asarray(x), jnp.asarray(w))
    with polyax.default_device("cpu"):
        np.testing.assert_allclose(polyax.jit(f)(x, w), wanted, rtol=1e-4, atol=1e-4)
