"""Kernels of the specification tables, of random programs and of tiles, compiled with NVRTC for an H100.

What the whole suite makes for OpenCL is compiled at the end of the session (``support/nvrtc.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from fuzz.programs import Program

import polyax
import polyax.numpy as jnp
from polyax.ir.aval import ShapedArray
from polyax_conformance.specs import elementwise, networks, reductions, shapes
from polyax_cuda.backend import CudaBackend
from polyax_cuda.check import H100, compile_all, sources
from polyax_cuda.emitter import CudaEmitter
from polyax_kernels.gpu.products import product as products
from polyax_kernels.gpu.products import tiles

ROWS = [s for s in (*elementwise.SPECS, *reductions.SPECS, *shapes.SPECS, *networks.SPECS) if s.sample]
SEEDS = range(12)
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")


@pytest.fixture(autouse=True)
def without_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CudaBackend, "lowerings", lambda _: {})


def texts(fun: Callable[..., Any], args: Sequence[Any]) -> list[str]:
    return sources(polyax.make_jaxpr(fun)(*args))


def of_rows(form: str) -> Iterator[str]:
    for spec in ROWS:
        fun, args = (lambda *xs, f=spec.fun: f(jnp, *xs)), spec.args()
        if form == "grad" and spec.differentiable and args[0].dtype.kind == "f":
            yield from texts(polyax.grad(lambda *xs, f=fun: jnp.sum(f(*xs))), args)
        elif form == "vmap":
            yield from texts(polyax.vmap(fun), spec.args(3))
        elif form == "jit":
            yield from texts(fun, args)


@pytest.mark.parametrize("form", ["jit", "grad", "vmap"])
def test_specification_tables(form: str) -> None:
    assert compile_all(of_rows(form)) > 15


def test_random_programs() -> None:
    found = [t for seed in SEEDS for p in [Program(seed, polyax)] for t in texts(lambda *xs, p=p: p(*xs), p.args)]
    assert compile_all(found) > len(SEEDS)


def test_all_conversions() -> None:
    """Between all pairs of dtypes; 64 bits included."""
    with polyax.enable_x64():
        found = [
            text
            for source in (*DTYPES, *FLOATS)
            for text in texts(lambda x: [x.astype(d) for d in (*DTYPES, *FLOATS)], [np.ones(7, jnp.dtype(source))])
        ]
    assert len(found) == compile_all(found) > 0


@pytest.mark.parametrize("dtype", [*DTYPES[1:], *FLOATS])
def test_tiles(dtype: str) -> None:
    """Operands that are stored in both ways; all sizes of tiles with one dtype, two with the others."""
    kind, found = np.dtype(jnp.dtype(dtype)), []
    plain = (3, 65, 33), (3, 33, 130), (((2,), (1,)), ((0,), (0,)))
    transposed = (3, 33, 65), (3, 130, 33), (((1,), (2,)), ((0,), (0,)))
    for *both, numbers in (plain, transposed):
        avals = [ShapedArray(shape, kind) for shape in both]
        product = products.describe(avals, kind, {"dimension_numbers": numbers})
        for tile in tiles.CANDIDATES if dtype == "float32" else (tiles.DEFAULT, tiles.SMALLEST):
            assert tiles.fits(tile, product.accumulator, H100)
            found += [launch.source for launch in tiles.recipe(product, tile, CudaEmitter).launches]
    assert compile_all(found) == len(found)
