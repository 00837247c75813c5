"""Products through BLAS: every layout that needs no copy, against NumPy in float64."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.ir.aval import ShapedArray
from polyax.reference.rules_together import in_order
from polyax.runtime.contract.backend import CompileOptions
from polyax_cpu.libraries import products
from polyax_cpu.processors import host
from polyax_kernels.host.backend import FUNCTION
from polyax_kernels.host.threads import num_threads
from support.products import CASES, expected

F32 = np.dtype("float32")
HEADS = ((2, 5, 4, 3), (2, 6, 4, 3), ((3,), (3,)), ((0, 2), (0, 2)))
GROUPED = {
    "heads of attention": HEADS,
    "heads of attention and a batch": ((2, 4, 5, 3), (2, 3, 4, 6), ((3,), (1,)), ((0, 1), (0, 2))),
    "a batch and heads of attention": ((2, 5, 4, 3), (2, 4, 3, 6), ((3,), (2,)), ((0, 2), (0, 1))),
}
"""Where matrices of a batch are, takes two numbers."""
TURNED = [(2, 4, 4, 4), (3, 5, 7, 6), (2, 2, 3, 9), (2, 16, 33, 31), (2, 3, 2, 31), (2, 8, 32, 32), (1, 6, 9, 13)]
"""Batch, rows, terms and columns of products by transposes: whole squares of four, parts of them, and what is large."""


@pytest.mark.parametrize("name", [*CASES, *GROUPED])
@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_product(name: str, pieces: int) -> None:
    x_shape, y_shape, contracted, batch = {**CASES, **GROUPED}[name]
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(F32) for s in (x_shape, y_shape))
    avals = [ShapedArray(s, F32) for s in (x_shape, y_shape)]
    found = products.describe(avals, {"dimension_numbers": (contracted, batch)})
    assert found is not None
    want = expected(x, y, contracted, batch)
    out = np.full(want.shape, np.nan, F32)
    pointers = (ctypes.c_void_p * 3)(x.ctypes.data, y.ctypes.data, out.ctypes.data)
    scalars = (ctypes.c_int64 * len(found.scalars))(*found.scalars)
    function = FUNCTION(products.function("float32"))
    cuts = [found.extent * n // pieces for n in range(pieces + 1)]
    for begin, end in pairwise(cuts):
        function(ctypes.addressof(pointers), ctypes.addressof(scalars), begin, end)
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_sums_of_products(name: str, dtype: str) -> None:
    """All members have the sum, whatever was there."""
    x_shape, y_shape, contracted, batch = CASES[name]
    rng = np.random.default_rng(0)
    args = [[rng.standard_normal(s).astype(dtype) for s in (x_shape, y_shape)] for _ in range(3)]
    found = products.describe(
        [ShapedArray(x.shape, x.dtype) for x in args[0]], {"dimension_numbers": (contracted, batch)}
    )
    assert found is not None
    want = np.sum([expected(x, y, contracted, batch) for x, y in args], 0)
    outs = [[np.full(want.shape, np.nan, dtype)] for _ in range(3)]
    products.adding(dtype, found)(outs, args, in_order)
    for (out,) in outs:
        np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sizes", TURNED)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_products_by_small_transposes(sizes: tuple[int, ...], dtype: str) -> None:
    batch, m, k, n = sizes
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(dtype) for s in ((batch, m, k), (batch, n, k)))
    avals = [ShapedArray(a.shape, a.dtype) for a in (x, y)]
    found = products.describe(avals, {"dimension_numbers": (((2,), (2,)), ((0,), (0,)))})
    assert found is not None and found.b_transposed
    out = np.full((batch, m, n), np.nan, dtype)
    products.adding(dtype, found)([[out]], [[x, y]], in_order)
    np.testing.assert_allclose(out, np.einsum("bij,bkj->bik", x, y, dtype="complex128"), rtol=1e-5, atol=1e-5)


def test_large_sums_are_cut_in_pieces() -> None:
    rng = np.random.default_rng(0)
    for shapes in [((200, 50), (50, 90)), ((20, 50), (50, 900)), ((4, 60, 50), (4, 50, 70))]:
        batch = ((0,), (0,)) if len(shapes[0]) == 3 else ((), ())
        contracted = ((len(shapes[0]) - 1,), (len(shapes[0]) - 2,))
        args = [[rng.standard_normal(s) for s in shapes] for _ in range(3)]
        avals = [ShapedArray(x.shape, x.dtype) for x in args[0]]
        found = products.describe(avals, {"dimension_numbers": (contracted, batch)})
        assert found is not None
        counts: list[int] = []

        def shared(count: int, work: Callable[[int], None], counts: list[int] = counts) -> None:
            counts.append(count)
            in_order(count, work)

        outs = [[np.full((*shapes[0][:-1], shapes[1][-1]), np.nan)] for _ in range(3)]
        products.adding("float64", found)(outs, args, shared)
        assert counts == [num_threads()]
        for (out,) in outs:
            np.testing.assert_allclose(out, sum(x @ y for x, y in args))


def test_small_products_in_groups_are_right_in_loops() -> None:
    """They can't be code in the place of a call, whose operands step from one matrix to the next."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((2, 2, 3, 2)).astype(F32) for _ in range(2))
    step = lambda c, _: (jnp.einsum("bqnh,bknh->bnqk", c, y).transpose(0, 2, 1, 3) * 0.1, None)
    with polyax.default_device("cpu"):
        found, _ = polyax.jit(lambda x: polyax.lax.scan(step, x, length=3))(x)
    want = x.astype(float)
    for _ in range(3):
        want = np.einsum("bqnh,bknh->bnqk", want, y).transpose(0, 2, 1, 3) * 0.1
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-6)


NONE = ((), ())
COPIED = {
    "left's columns lie apart": ((5, 3, 4, 2), (3, 2, 6), ((1, 3), (0, 1)), NONE),
    "the right one in another order": ((3, 7, 5), (7, 3, 6), ((0, 1), (1, 0)), NONE),
    "rows in the middle": ((2, 5, 3), (3, 4, 2), ((0, 2), (2, 0)), NONE),
    "batch in the middle": ((4, 3, 5, 2), (2, 6, 3, 5), ((3, 2), (0, 3)), ((1,), (2,))),
    "large": ((30, 64, 40), (40, 30, 50), ((0, 2), (1, 0)), NONE),
    "no rows": ((0, 7, 2), (2, 7, 6), ((1, 2), (1, 0)), NONE),
    "nothing to add": ((4, 0, 3, 2), (2, 0, 6), ((1, 3), (1, 0)), NONE),
}


@pytest.mark.parametrize("name", COPIED)
def test_what_needs_copies(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the same BLAS: NumPy's has threads, which spin while other devices wait for cores."""
    x_shape, y_shape, contracted, batch = COPIED[name]
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(F32) for s in (x_shape, y_shape))
    avals, params = [ShapedArray(s, F32) for s in (x_shape, y_shape)], {"dimension_numbers": (contracted, batch)}
    assert products.describe(avals, params) is None
    want = expected(x, y, contracted, batch)
    out = np.full(want.shape, np.nan, F32)
    for other in ("matmul", "dot", "einsum", "tensordot"):
        monkeypatch.delattr(np, other)
    products.after_copies(avals, params)([out], [x, y])
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("spec", ["bij,bjk->bik", "bij,bkj->bik", "bji,bkj->bik"])
@pytest.mark.parametrize(
    ("batch", "side", "dtype", "kind"),
    [
        *[(2000, 4, "float32", "kernel"), (64, 8, "float32", "kernel"), (80, 21, "float32", "call")],
        *[(20, 4, "float32", "call"), (64, 8, "complex64", "kernel"), (64, 9, "complex64", "call")],
        *[(64, 5, "complex128", "kernel"), (64, 6, "complex128", "call")],
        (64, 20, "float32", "call" if host().vector_bits == 512 else "kernel"),
    ],
)
def test_stacks_of_small_products_are_kernels(spec: str, batch: int, side: int, dtype: str, kind: str) -> None:
    """BLAS would be called for each of them."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((batch, side, side)).astype(dtype) for _ in range(2))
    device = polyax.devices("cpu")[0]
    f = lambda x, y: jnp.einsum(spec, x, y)
    with polyax.default_device(device), polyax.enable_x64(True):
        report = device.backend.compile(polyax.make_jaxpr(f)(x, y), CompileOptions(device)).report()
        got = polyax.jit(f)(x, y)
    assert [k.kind for k in report.kernels] == [kind]
    np.testing.assert_allclose(got, np.einsum(spec, x.astype(complex), y), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "left, right, contracted, extent",
    [
        ((5000,), (5000, 16), (0, 0), 1),
        ((5000,), (5000, 64), (0, 0), 2),
        ((5000,), (16, 5000), (0, 1), 16),
        ((5000, 16), (5000,), (0, 0), 1),
        ((16, 5000), (5000,), (1, 0), 16),
        ((5000, 4), (5000, 64), (0, 0), 2),
    ],
)
def test_narrow_matrices_by_vectors_are_read_by_one_thread(
    left: tuple[int, ...], right: tuple[int, ...], contracted: tuple[int, int], extent: int
) -> None:
    avals = [ShapedArray(shape, np.dtype("float32")) for shape in (left, right)]
    axes = tuple((axis,) for axis in contracted)
    found = products.describe(avals, {"dimension_numbers": (axes, ((), ()))})
    assert found is not None and found.extent == extent


ODD = {
    "many rows": (1001, 33, 77), "many columns": (55, 1003, 777), "columns": (101, 203, 307), "equal": (333, 333, 333),
    "few of both": (30, 5000, 40), "one row left": (25, 3000, 20), "one of more": (73, 900, 40),
    "parts of few": (89, 1353, 18), "parts of flat": (24, 395, 62), "long": (2, 500, 3001),
    "by a vector": (1003, 1001, 1), "a vector by": (1, 997, 2011), "a few by a vector": (7, 3001, 1),
}  # fmt: skip
"""Rows, terms and columns, of which nothing is a multiple of what kernels take together."""


@pytest.mark.parametrize("sizes", ODD.values(), ids=ODD)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("turned", [False, True])
def test_have_the_same_bits_on_any_number_of_threads(sizes: tuple[int, ...], dtype: str, turned: bool) -> None:
    m, k, n = sizes
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))
    x, y = (np.ascontiguousarray(a.T) for a in (x, y)) if turned else (x, y)
    axes = ((0,), (1,)) if turned else ((1,), (0,))
    found = products.describe([ShapedArray(a.shape, a.dtype) for a in (x, y)], {"dimension_numbers": (axes, ((), ()))})
    assert found is not None
    want, *others = (_in_pieces(found, dtype, (x, y), threads) for threads in (1, 2, 3))
    np.testing.assert_allclose(want, (x.T if turned else x) @ (y.T if turned else y), rtol=1e-3, atol=1e-3)
    for got in others:
        np.testing.assert_array_equal(got, want)


def _in_pieces(product: products.NativeProduct, dtype: str, args: Any, threads: int) -> np.ndarray:
    out = np.full((product.m, product.n), np.nan, dtype)
    pointers = (ctypes.c_void_p * 3)(*(a.ctypes.data for a in (*args, out)))
    scalars = (ctypes.c_int64 * len(product.scalars))(*product.scalars)
    cuts = [product.extent * n // threads for n in range(threads + 1)]
    for begin, end in pairwise(cuts):
        FUNCTION(products.function(dtype))(ctypes.addressof(pointers), ctypes.addressof(scalars), begin, end)
    return out


@pytest.mark.parametrize(
    ("equation", "shapes", "calls"),
    [
        ("bi,bi->b", [(100, 3), (100, 3)], 0),
        ("bij,bjk->bik", [(64, 3, 3), (64, 3, 3)], 0),
        ("bij,bjk->bik", [(63, 3, 3), (63, 3, 3)], 1),
        ("bij,bjk->bik", [(64, 8, 8), (64, 8, 8)], 0),
        ("bij,bjk->bik", [(64, 8, 8), (64, 8, 129)], 1),
        ("bij,bj->bi", [(64, 16, 16), (64, 16)], 0),
        ("i,j->ij", [(300,), (200,)], 0),
        ("bi,bj->bij", [(20, 30), (20, 40)], 0),
        ("ij,jk->ik", [(300, 3), (3, 3)], 1),
    ],
)
def test_products_of_stacks_and_outer_ones_are_kernels(equation: str, shapes: list, calls: int) -> None:
    arrays = [np.random.default_rng(1).standard_normal(shape).astype(F32) for shape in shapes]
    fun = lambda *xs: jnp.exp(jnp.einsum(equation, *xs))
    kinds = [k.kind for k in polyax.explain(fun)(*arrays).report.kernels]
    assert kinds.count("call") == calls, kinds
    want = np.exp(np.einsum(equation, *(x.astype(np.float64) for x in arrays)))
    np.testing.assert_allclose(polyax.jit(fun)(*arrays), want, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_no_product_needs_python(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((32, 64, 3)).astype(dtype), rng.standard_normal((64, 16)).astype(dtype)
    monkeypatch.delattr(products, "after_copies")
    device = polyax.devices("cpu")[0]
    f = lambda x, y: jnp.einsum("ijk,jl->ikl", x, y)
    report = device.backend.compile(polyax.make_jaxpr(f)(x, y), CompileOptions(device)).report()
    assert [k.kind for k in report.kernels] == ["kernel", "call"]
    with polyax.default_device(device):
        np.testing.assert_allclose(polyax.jit(f)(x, y), np.einsum("ijk,jl->ikl", x, y), rtol=1e-4, atol=1e-4)
