"""NVIDIA's libraries as lowerings: what is asked of them, run with NumPy in CuPy's clothes; and CuPy's real names."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import cupy
import cupy_backends.cuda.libs as libs
import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.ir.aval import ShapedArray
from polyax.ops import contract, qr, solve, sort, spectral
from polyax.reference.interpreter import run_on_host
from polyax_cuda import cublas, library, linalg, products, runtime
from polyax_cuda.check import H100, compile_all
from polyax_kernels.gpu.cuda_like import pivots
from polyax_kernels.gpu.executable import View
from polyax_kernels.gpu.runtime import DeviceError
from polyax_kernels.lower.lowering import Call
from support import cupy_stand_in
from support.cupy_stand_in import Runtime, StandIn

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cublas, linalg, runtime):
        monkeypatch.setattr(module, "cupy", StandIn())
    blas = cupy_stand_in.CuBlas()
    monkeypatch.setattr(cublas, "library", lambda: blas)
    cublas.handle.cache_clear()
    monkeypatch.setitem(libs.__dict__, "cusolver", cupy_stand_in.CuSolver())
    scipy_linalg = ModuleType("cupyx.scipy.linalg")
    scipy_linalg.__dict__["solve_triangular"] = cupy_stand_in.solve_triangular
    monkeypatch.setitem(sys.modules, "cupyx.scipy.linalg", scipy_linalg)


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def equation(fun: Callable[..., Any], primitive: Any, args: Sequence[np.ndarray]) -> Any:
    """The use of ``primitive`` in the program of ``fun``."""
    eqns = polyax.make_jaxpr(fun)(*args).jaxpr.eqns
    return next(e for e in eqns if e.primitive is primitive)


def run(primitive: Any, args: Sequence[np.ndarray], params: dict[str, Any]) -> list[np.ndarray]:
    """Through the lowering, on memory with offsets."""
    gpu = Runtime(H100)
    avals = [ShapedArray(x.shape, x.dtype) for x in args]
    outs = primitive.abstract_eval(*avals, **params)
    places = [View(gpu.allocate(a.nbytes + 64), 64, a) for a in (*avals, *outs)]
    for place, x in zip(places, args, strict=False):
        gpu.write(place.memory, place.offset, np.ascontiguousarray(x))
    context, inputs, results = SimpleNamespace(runtime=gpu), places[: len(args)], places[len(args) :]
    lowering = library.LOWERINGS[primitive]
    assert isinstance(lowering, Call)
    lowering.ready(context, outs, avals, params)(results, inputs)
    return [runtime.array(v).copy().view(np.ndarray) for v in results]


def check(primitive: Any, args: Sequence[np.ndarray], params: dict[str, Any], tolerance: float = 1e-5) -> None:
    for got, want in zip(run(primitive, args, params), run_on_host(primitive, args, params), strict=True):
        np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=tolerance, atol=tolerance)


PRODUCTS = {
    "matrices": ("ij,jk->ik", (3, 4), (4, 5)),
    "transposed": ("ji,kj->ik", (4, 3), (5, 4)),
    "batch": ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    "heads": ("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)),
    "vector": ("ij,j->i", (3, 4), (4,)),
    "outer": ("i,j->ij", (3,), (4,)),
    "scalar": ("i,i->", (3,), (3,)),
    "contracted apart": ("iaj,jka->ik", (3, 2, 4), (4, 5, 2)),
    "rows of one": ("ij,jk->ik", (1, 4), (4, 1)),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_products(name: str, dtype: str) -> None:
    text, *shapes = PRODUCTS[name]
    args = [normal(*s) for s in shapes]
    params = equation(lambda x, y: jnp.einsum(text, x, y), contract.dot_general_p, args).params
    params = params | {"preferred_element_type": np.dtype(dtype)}
    tolerance = 1e-2 if dtype == "float16" else 1e-5
    check(contract.dot_general_p, [x.astype(dtype) for x in args], params, tolerance)


def test_heads_of_attention_are_not_copied() -> None:
    """Neither next to each other nor one batch: a call for each of the outer ones, on memory as it lies."""
    args = [normal(3, 5, 2, 4), normal(3, 7, 2, 4)]
    params = equation(lambda x, y: jnp.einsum("bqhd,bkhd->bhqk", x, y), contract.dot_general_p, args).params
    avals = [ShapedArray(x.shape, x.dtype) for x in args]
    made = products.CublasCalls(Runtime(H100), contract.dot_general_p.abstract_eval(*avals, **params), avals, params)
    assert made.records
    assert (made.batch, len(made.groups)) == (2, 3)
    check(contract.dot_general_p, args, params)


@pytest.mark.parametrize(
    ("asked", "compute"), [(None, 68), ("highest", 68), ("float32", 68), ("tensorfloat32", 77), ("default", 77)]
)
def test_float32_is_computed_in_tf32_where_less_is_asked_for(asked: str | None, compute: int) -> None:
    args = [normal(3, 4), normal(4, 5)]
    params = equation(lambda x, y: jnp.dot(x, y, precision=asked), contract.dot_general_p, args).params
    avals = [ShapedArray(x.shape, x.dtype) for x in args]
    outs = contract.dot_general_p.abstract_eval(*avals, **params)
    assert products.CublasCalls(Runtime(H100), outs, avals, params).compute == compute
    check(contract.dot_general_p, args, params)


@pytest.mark.parametrize(("dtype", "compute"), [("float16", 68), ("bfloat16", 68), ("float64", 70)])
def test_tf32_is_for_float32_alone(dtype: str, compute: int) -> None:
    """cuBLAS refuses it for others, which are as exact as they are whatever is asked for."""
    with polyax.enable_x64(True):
        args = [jnp.ones((3, 4), dtype), jnp.ones((4, 5), dtype)]
        params = equation(lambda x, y: jnp.dot(x, y, precision="high"), contract.dot_general_p, args).params
    avals = [x.aval for x in args]
    outs = contract.dot_general_p.abstract_eval(*avals, **params)
    assert products.CublasCalls(Runtime(H100), outs, avals, params).compute == compute


def test_operands_that_are_copied_are_not_recorded() -> None:
    args = [normal(3, 2, 4), normal(4, 5, 2)]
    params = equation(lambda x, y: jnp.einsum("iaj,jka->ik", x, y), contract.dot_general_p, args).params
    avals = [ShapedArray(x.shape, x.dtype) for x in args]
    assert not products.CublasCalls(
        Runtime(H100), contract.dot_general_p.abstract_eval(*avals, **params), avals, params
    ).records


def test_a_handle_gets_its_stream_before_its_workspace() -> None:
    """The other order would take the workspace away, and cuBLAS would allocate during recordings."""
    cublas.handle(0, 7)
    assert cublas.library().made == ["create", "stream 7", f"workspace {cublas.WORKSPACE}"]


def test_a_call_that_cublas_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    args = [normal(3, 4), normal(4, 5)]
    params = equation(jnp.dot, contract.dot_general_p, args).params
    told = r"status 15 \(not supported\) for the product of float32\[3,4\] and float32\[4,5\]. Check its"
    monkeypatch.setattr(cublas.library(), "cublasGemmStridedBatchedEx", lambda *_: 15, raising=False)
    with pytest.raises(DeviceError, match=told):
        check(contract.dot_general_p, args, params)


def positive(*shape: int) -> np.ndarray:
    x = normal(*shape)
    return x @ np.swapaxes(x, -1, -2) + 4 * np.eye(shape[-1], dtype=np.float32)


@pytest.mark.parametrize("shape", [(4, 4), (3, 4, 4), (2, 3, 4, 4)])
def test_cholesky(shape: tuple[int, ...]) -> None:
    check(solve.cholesky_p, [positive(*shape)], {})


def test_cholesky_of_what_is_not_positive_definite_is_nan() -> None:
    x = np.stack([positive(3, 3), -np.eye(3, dtype=np.float32)])
    (got,) = run(solve.cholesky_p, [x], {})
    assert np.isfinite(got[0]).all()
    assert np.isnan(np.diag(got[1])).all()


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 4)])
def test_lu(shape: tuple[int, ...]) -> None:
    check(solve.lu_p, [normal(*shape)], {})


@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transpose_a", [True, False])
def test_triangular_solve(left_side: bool, lower: bool, transpose_a: bool) -> None:
    a, b = normal(2, 4, 4) + 4 * np.eye(4, dtype=np.float32), normal(2, *((4, 3) if left_side else (3, 4)))
    flags = {"left_side": left_side, "lower": lower, "transpose_a": transpose_a}
    check(solve.triangular_solve_p, [a, b], flags | {"conjugate_a": False, "unit_diagonal": False})


@pytest.mark.parametrize(
    ("fun", "primitive", "args"),
    [
        (lambda x: lax.linalg.qr(x, full_matrices=False), qr.qr_p, [normal(5, 3)]),
        (lambda x: lax.linalg.svd(x, full_matrices=True), spectral.svd_p, [normal(2, 3, 4)]),
        (lambda x: lax.linalg.eigh(x), spectral.eigh_p, [positive(2, 4, 4)]),
        (lambda x, y: lax.sort((x, y), num_keys=2), sort.sort_p, [normal(4, 9).round(), normal(4, 9)]),
    ],
    ids=["qr", "svd", "eigh", "sort"],
)
def test_rules_that_numpy_shares(fun: Callable[..., Any], primitive: Any, args: list[np.ndarray]) -> None:
    check(primitive, args, equation(fun, primitive, args).params)


def test_cupy_has_what_numpy_dispatches() -> None:
    """The functions of the shared rules, with arguments that the rules give."""
    parameters = {
        cupy.argsort: ("axis", "kind"), cupy.take_along_axis: ("indices", "axis"), cupy.flip: ("axis",),
        cupy.take: ("indices", "axis"), cupy.linalg.qr: ("mode",), cupy.linalg.eigh: ("UPLO",),
        cupy.linalg.svd: ("full_matrices", "compute_uv"), cupy.fft.fftn: ("s", "axes"), cupy.fft.irfftn: ("s", "axes"),
    }  # fmt: skip
    for function, names in parameters.items():
        assert set(names) <= set(inspect.signature(function).parameters), function.__name__
    assert hasattr(cupy.ndarray, "__array_function__")


def test_permutations_compile() -> None:
    assert compile_all([pivots.PERMUTE]) == 1


def test_many_tiny_products_are_left_to_kernels() -> None:
    params = {"dimension_numbers": (((2,), (1,)), ((0,), (0,)))}
    small, large = ([ShapedArray((1000, side, side), np.dtype("float32"))] * 2 for side in (4, 16))
    assert "of matrices no larger than 8" in str(products.why_not(small, params))
    assert "of matrices" not in str(products.why_not(large, params))


@pytest.mark.parametrize(
    ("dtypes", "wanted", "reason"),
    [
        (("int32", "int32"), None, "no product of int32"),
        (("float32", "float16"), None, "no product of float32 and float16"),
        (("float64", "float64"), "float32", "no product of float64 in float32"),
    ],
)
def test_products_that_are_left_to_tiles(dtypes: tuple[str, str], wanted: str | None, reason: str) -> None:
    avals = [ShapedArray((4, 4), np.dtype(d)) for d in dtypes]
    assert reason in str(products.why_not(avals, {"preferred_element_type": wanted}))
