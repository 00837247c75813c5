"""Products of GPU backends, as panels and as tiles on an OpenCL device: every layout, dtype and edge."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import polyax as jax
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray
from polyax.ops.contract import dot_general_p
from polyax_kernels.gpu.products import multiply, panels, tiles
from polyax_kernels.gpu.products.product import describe
from polyax_kernels.ir.limits import Limits
from support.launching import run
from support.products import CASES, expected

F32 = np.dtype("float32")
PLAIN = ((1,), (0,)), ((), ())
PANELS = panels.candidates(Limits())[0]
TILES = {"panels": PANELS, "wide panels": replace(PANELS, rows=4, vectors=3, depth=5), "tiles": tiles.SMALLEST}
MORE = CASES | {
    "no common order": ((3, 7, 5), (7, 3, 6), ((0, 1), (1, 0)), ((), ())),
    "free dimensions apart": ((5, 7, 4), (7, 6), ((1,), (0,)), ((), ())),
    "primes": ((37, 41), (41, 43), *PLAIN),
    "two batches": ((2, 3, 5, 7), (3, 2, 7, 6), ((3,), (2,)), ((0, 1), (1, 0))),
}


def multiplied(device: Any, tile: Any, x: np.ndarray, y: np.ndarray, numbers: Any, result: Any = None) -> np.ndarray:
    """The product, computed with ``tile``."""
    params = {"dimension_numbers": numbers, "precision": None, "preferred_element_type": result}
    avals = [ShapedArray(a.shape, a.dtype) for a in (x, y)]
    (out,) = dot_general_p.abstract_eval(*avals, **params)
    product = describe(avals, out.dtype, params)
    return run(device.runtime, multiply.launches(device, product, tile), (x, y), out)


def normal(*shapes: tuple[int, ...], dtype: Any = F32) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [(4 * rng.standard_normal(s)).astype(dtype) for s in shapes]


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("name", MORE)
def test_layouts(opencl: SimpleNamespace, name: str, tile: str) -> None:
    x_shape, y_shape, *numbers = MORE[name]
    x, y = normal(x_shape, y_shape)
    found = multiplied(opencl, TILES[tile], x, y, tuple(numbers))
    np.testing.assert_allclose(found, expected(x, y, *numbers), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("tile", ["panels", "tiles"])
@pytest.mark.parametrize(
    "shapes", [((1, 1), (1, 1)), ((97, 1), (1, 101)), ((1, 513), (513, 1)), ((13, 600), (600, 17))]
)
def test_edges(opencl: SimpleNamespace, shapes: Any, tile: str) -> None:
    x, y = normal(*shapes)
    found = multiplied(opencl, TILES[tile], x, y, PLAIN)
    np.testing.assert_allclose(found, x.astype(float) @ y.astype(float), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("tile", ["panels", "tiles"])
@pytest.mark.parametrize(
    "dtype, result, tolerance",
    [
        ("float64", None, 1e-13), ("float16", None, 1e-2), ("bfloat16", None, 3e-2), ("bfloat16", "float32", 1e-5),
        ("int8", None, 0), ("uint8", "uint32", 0), ("int32", None, 0), ("int64", None, 0), ("int32", "float32", 1e-6),
        ("bool", None, 0),
    ],
)  # fmt: skip
def test_dtypes(opencl: SimpleNamespace, dtype: str, result: Any, tolerance: float, tile: str) -> None:
    """Narrow floats are summed in float32; integers wrap around."""
    dtype = dtypes.canonicalize(dtype) if dtype == "bfloat16" else np.dtype(dtype)
    x, y = normal((19, 300), (300, 23), dtype=dtype)
    found = multiplied(opencl, TILES[tile], x, y, PLAIN, result and np.dtype(result))
    wide = np.float64 if found.dtype.kind not in "biu" else np.int64
    want = (x.astype(wide) @ y.astype(wide)).astype(found.dtype)
    np.testing.assert_allclose(found.astype(wide), want.astype(wide), rtol=tolerance, atol=tolerance * 100)


@pytest.mark.parametrize("scratch", [1, 4000])
def test_products_larger_than_the_scratch_memory_are_done_in_parts(opencl, monkeypatch, scratch: int) -> None:
    monkeypatch.setattr(panels, "SCRATCH", scratch)
    x, y = normal((5, 29, 31), (5, 31, 37))
    numbers = ((2,), (1,)), ((0,), (0,))
    product = describe([ShapedArray(a.shape, F32) for a in (x, y)], F32, {"dimension_numbers": numbers})
    assert len(panels.recipe(product, PANELS, opencl.dialect, 2).launches) > 3
    found = multiplied(opencl, PANELS, x, y, numbers)
    np.testing.assert_allclose(found, x.astype(float) @ y.astype(float), rtol=1e-5, atol=1e-4)


def test_limits_decide_between_panels_and_tiles() -> None:
    alone, small = Limits(group=1), Limits(group=64, threads=64, local_bytes=2**12)
    assert all(isinstance(t, panels.PanelTile) for t in multiply.candidate_tiles(alone, F32))
    assert multiply.candidate_tiles(small, F32) == [tiles.SMALLEST]
    roomy = Limits(group=256, threads=1024, local_bytes=2**16)
    assert len(multiply.candidate_tiles(roomy, F32)) == len(tiles.CANDIDATES)


@pytest.mark.parametrize(
    "shapes, part",
    [
        (((0, 7), (7, 9)), "empty"),
        (((8, 0), (0, 9)), "empty"),
        (((8, 8), (8, 8)), "small"),
        (((1, 4096), (4096, 512)), "few rows"),
        (((512, 512), (512, 512)), None),
    ],
)
def test_what_is_left_to_kernels(shapes: Any, part: str | None) -> None:
    reason = multiply.PRODUCT.why_not([ShapedArray(s, F32) for s in shapes], {"dimension_numbers": PLAIN})
    assert reason is None if part is None else reason is not None and part in reason


def test_sources_don_t_depend_on_sizes(opencl: SimpleNamespace) -> None:
    """One compilation serves all sizes of a layout."""
    texts = set()
    for m, n, k in ((30, 40, 50), (31, 53, 67)):
        avals = [ShapedArray(s, F32) for s in ((m, k), (k, n))]
        product = describe(avals, F32, {"dimension_numbers": PLAIN})
        texts.add(tuple(x.source for x in panels.recipe(product, PANELS, opencl.dialect, 2).launches))
    assert len(texts) == 1


def test_tiles_compile_for_cuda() -> None:
    pytest.importorskip("cupy")
    check, emitter = (pytest.importorskip(f"polyax_cuda.{name}") for name in ("check", "emitter"))
    texts = []
    for dtype in (F32, np.dtype("float64"), np.dtype("int32"), dtypes.canonicalize("bfloat16")):
        for x_shape, y_shape, *numbers in (MORE["batch of transposed"], MORE["no common order"]):
            avals = [ShapedArray(s, dtype) for s in (x_shape, y_shape)]
            product = describe(avals, dtype, {"dimension_numbers": tuple(numbers)})
            texts += [x.source for x in tiles.recipe(product, tiles.DEFAULT, emitter.CudaEmitter).launches]
    assert check.compile_all(texts) == len(set(texts))


@pytest.mark.parametrize("name", ["primes", "two batches", "no common order"])
def test_tiles_in_cuda(name: str) -> None:
    """On an emulated GPU."""
    emitter = pytest.importorskip("polyax_cuda.emitter")
    emulator = pytest.importorskip("support.emulator")
    runtime = emulator.EmulatedRuntime(Limits(group=64, threads=1024))
    device = SimpleNamespace(runtime=runtime, dialect=emitter.CudaEmitter, allocate=runtime.allocate)
    x_shape, y_shape, *numbers = MORE[name]
    x, y = normal(x_shape, y_shape)
    found = multiplied(device, tiles.SMALLEST, x, y, tuple(numbers))
    np.testing.assert_allclose(found, expected(x, y, *numbers), rtol=1e-5, atol=1e-4)


def test_programs_multiply_and_convolve_by_them(opencl: SimpleNamespace) -> None:
    x, y, image, window = normal((70, 300), (90, 300), (2, 17, 18, 9), (3, 3, 9, 20))
    layout = ("NHWC", "HWIO", "NHWC")

    def loss(x: Any, y: Any, image: Any, window: Any) -> Any:
        convolved = jax.lax.conv_general_dilated(image, window, (2, 1), "SAME", dimension_numbers=layout)
        return (x @ y.T).sum() + (convolved**2).sum()

    args = [jax.device_put(a, jax.devices("opencl")[0]) for a in (x, y, image, window)]
    gradient = jax.jit(jax.grad(loss, (0, 1, 2, 3)))
    found = gradient(*args)
    host = gradient(*(jax.device_put(a, jax.devices("cpu")[0]) for a in (x, y, image, window)))
    np.testing.assert_allclose(found[0], np.tile(y.astype(float).sum(0), (70, 1)), rtol=1e-4, atol=1e-3)
    for a, b in zip(found, host, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * np.abs(b).max())


@pytest.mark.parametrize(("batch", "side"), [(1000, 8), (70_000, 16)])
def test_many_small_products_are_left_to_kernels(batch: int, side: int) -> None:
    """A device counts groups along the second and third dimension in 16 bits."""
    avals = [ShapedArray((batch, side, side), np.dtype("float32"))] * 2
    params = {"dimension_numbers": (((2,), (1,)), ((0,), (0,)))}
    reason = multiply.why_no_tiles(describe(avals, np.dtype("float32"), params))
    assert reason == "many small products are one kernel"
    fewer = [ShapedArray((200, 16, 16), np.dtype("float32"))] * 2
    assert multiply.why_no_tiles(describe(fewer, np.dtype("float32"), params)) is None
