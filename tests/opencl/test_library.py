"""How products are put to CLBlast. The library itself isn't here: a model of its documented interface stands in."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from polyax.ir.aval import ShapedArray
from polyax_opencl import library
from polyax_opencl.runtime import OpenCLRuntime

FLOAT = np.dtype("float32")
PRODUCTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], Any, str]] = {
    "plain": ((5, 7), (7, 3), (((1,), (0,)), ((), ())), "ik,kj->ij"),
    "left transposed": ((7, 5), (7, 3), (((0,), (0,)), ((), ())), "ki,kj->ij"),
    "right transposed": ((5, 7), (3, 7), (((1,), (1,)), ((), ())), "ik,jk->ij"),
    "both": ((7, 5), (3, 7), (((0,), (1,)), ((), ())), "ki,jk->ij"),
    "stack": ((4, 5, 7), (4, 7, 3), (((2,), (1,)), ((0,), (0,))), "bik,bkj->bij"),
    "stack in the middle": ((5, 4, 7), (7, 4, 3), (((2,), (0,)), ((1,), (1,))), "ibk,kbj->bij"),
    "vector": ((5, 7), (7,), (((1,), (0,)), ((), ())), "ik,k->i"),
}


def matrices(queue: Any, x: Any, rows: int, columns: int, ld: int, stride: int, count: int, offset: int) -> np.ndarray:
    """What CLBlast sees: row-major matrices ``stride`` elements apart, with rows ``ld`` apart."""
    whole = np.empty(x.base_data.size // 4, np.float32)
    import pyopencl as cl

    cl.enqueue_copy(queue, whole, x.base_data)
    at = offset + np.arange(count)[:, None, None] * stride + np.arange(rows)[:, None] * ld + np.arange(columns)
    return whole[at]


def gemm(queue: Any, m: int, n: int, k: int, batch: int, a: Any, b: Any, c: Any, **o: Any) -> None:
    """``gemmStridedBatched`` as pyclblast documents it."""
    import pyopencl as cl

    shapes = {"a": (k, m) if o["a_transp"] else (m, k), "b": (n, k) if o["b_transp"] else (k, n)}
    x, y = (
        matrices(queue, array, *shapes[name], o[f"{name}_ld"], o[f"{name}_stride"], batch, o[f"{name}_offset"])
        for name, array in (("a", a), ("b", b))
    )
    x, y = (z.swapaxes(1, 2) if o[f"{name}_transp"] else z for name, z in (("a", x), ("b", y)))
    assert (o["c_ld"], o["c_stride"]) == (n, m * n) and len(a.shape) == len(c.shape) == 2
    cl.enqueue_copy(queue, c.base_data, np.ascontiguousarray(x @ y), dst_offset=4 * o["c_offset"])


@pytest.mark.parametrize("name", PRODUCTS)
def test_arguments(name: str, runtime: OpenCLRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyclblast", SimpleNamespace(gemmStridedBatched=gemm))
    *shapes, numbers, formula = PRODUCTS[name]
    rng = np.random.default_rng(1)
    values = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    want = np.einsum(formula, *values)
    avals = [ShapedArray(shape, FLOAT) for shape in shapes]
    assert library.why_no_product(avals, {"dimension_numbers": numbers}) is None
    views = [view(runtime, aval, 64 * n) for n, aval in enumerate((*avals, ShapedArray(want.shape, FLOAT)))]
    for v, x in zip(views, values, strict=False):
        runtime.write(v.memory, v.offset, x)
    library.multiply(SimpleNamespace(runtime=runtime), views[2:], views[:2], dimension_numbers=numbers)
    found = np.empty(want.shape, np.float32)
    runtime.read(views[2].memory, views[2].offset, found)
    np.testing.assert_allclose(found, want, rtol=1e-5)


def view(runtime: OpenCLRuntime, aval: ShapedArray, offset: int) -> SimpleNamespace:
    memory = runtime.allocate(offset + aval.nbytes + 64)
    runtime.write(memory, 0, np.zeros(memory.size // 4, np.float32))
    return SimpleNamespace(memory=memory, offset=offset, aval=aval)


def test_declined_products() -> None:
    def reason(*shapes: tuple[int, ...], numbers: Any, dtype: str = "float32") -> str:
        avals = [ShapedArray(shape, np.dtype(dtype)) for shape in shapes]
        return str(library.why_no_product(avals, {"dimension_numbers": numbers}))

    plain = (((1,), (0,)), ((), ()))
    assert reason((2, 3), (3, 4), numbers=plain, dtype="int32") == "CLBlast multiplies float32 or float64, not int32"
    assert "no empty" in reason((0, 3), (3, 4), numbers=plain)
    scattered = (((0, 2), (0, 2)), ((), ()))
    assert "can't step" in reason((2, 3, 5), (2, 4, 5), numbers=scattered)


def test_without_the_library() -> None:
    assert "pip install pyclblast" in str(library.why_not([], {}))
