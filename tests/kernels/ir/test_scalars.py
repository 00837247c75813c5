"""The scalar table: its definitions against independent ones, C and decompositions against its definitions."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from kernels.building import BOOL, F32, F64, CompiledKernels, elementwise, result_of

from polyax_kernels.emit.numpy import NumpyEmitter, run
from polyax_kernels.emit.walker import emit_kernel
from polyax_kernels.ir import scalars
from polyax_kernels.ir.decompositions import integer_pow, reduce_precision
from polyax_kernels.ir.expr import bitcast, cast, consing, op
from polyax_kernels.ir.kernel import Schedule
from polyax_kernels.ir.scalars import TABLE, Scalar

FLOAT_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 1e-3, 0.95, -0.95, 20.0, -20.0, 88.0, 200.0)
FLOAT_EDGES += (-200.0, 1e9, -1e9, 1e19, -1e19, 1e30, math.inf, -math.inf, math.nan)
INT_EDGES = (0, 1, -1, 2, -2, 3, -3, 5, 7, 8, 16, 31, 32, 33, 63, 64, 100)
DTYPES = sorted(TABLE["select"].dtypes, key=str)
CASES = [pytest.param(s, d, id=f"{s.name}-{d}") for s in TABLE.values() for d in sorted(s.dtypes, key=str)]


def narrow(dtype: np.dtype) -> bool:
    return dtype.name in ("float16", "bfloat16")


def edges(dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind not in "iu":
        with np.errstate(over="ignore"):
            return np.array(FLOAT_EDGES).astype(dtype)
    info = np.iinfo(dtype)
    extremes = (info.min, info.min + 1, info.max - 1, info.max)
    return np.array([int(v) for v in (*INT_EDGES, *extremes) if info.min <= v <= info.max], dtype)


def operands(scalar: Scalar, dtype: np.dtype) -> list[np.ndarray]:
    """All combinations of edge values, one flat array for each operand."""
    each = [edges(BOOL if scalar.name == "select" and n == 0 else dtype) for n in range(scalar.arity)]
    return [np.ascontiguousarray(a.ravel()) for a in np.meshgrid(*each, indexing="ij")]


def defined(scalar: Scalar, dtype: np.dtype, args: list[np.ndarray]) -> np.ndarray:
    wide = narrow(dtype) and scalar.name != "nextafter"
    result = scalars.evaluate(scalar.name, *[a.astype(F32) if wide and a.dtype == dtype else a for a in args])
    with np.errstate(over="ignore"):
        return result.astype(scalar.result(dtype))


def assert_same(got: np.ndarray, want: np.ndarray, name: str) -> None:
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want, name)
        return
    tolerance = {8: 1e-12, 4: 3e-6, 2: 1e-2}[got.dtype.itemsize]
    got, want = got.astype(F64), want.astype(F64)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=min(tolerance, 1e-6), err_msg=name)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers], f"signs of zeros: {name}")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_c_follows_the_table(dtype: np.dtype) -> None:
    """All operations on one dtype, in one program."""
    known = [s for s in TABLE.values() if dtype in s.dtypes]
    with consing():
        kernels = [elementwise(lambda *x, s=s: op(s.name, *x), *operands(s, dtype)) for s in known]
        library = CompiledKernels(kernels)
    for n, (scalar, kernel) in enumerate(zip(known, kernels, strict=True)):
        args, out = operands(scalar, dtype), result_of(kernel)
        library.run(n, kernel, [*args, out])
        assert_same(out, defined(scalar, dtype, args), scalar.name)


class Fewer(NumpyEmitter):
    """An emitter that lacks whatever can be decomposed, but for one operation's parts at a time."""

    def supports(self, name: str, dtype: np.dtype) -> bool:
        return name != self.lacks

    lacks = ""


@pytest.mark.parametrize("scalar, dtype", [c for c in CASES if c.values[0].decompose is not None])  # type: ignore[union-attr]
def test_decompositions(scalar: Scalar, dtype: np.dtype) -> None:
    if scalar.name == "rem" and dtype.kind not in "iu":
        pytest.skip("the remainder of floats has no decomposition")
    args = operands(scalar, dtype)
    with consing():
        kernel = elementwise(lambda *x: op(scalar.name, *x), *args)
        out = result_of(kernel)
        emitter = Fewer(kernel, [*args, out])
        emitter.lacks = scalar.name
        emit_kernel(kernel, Schedule(), emitter, np.asarray(0), np.asarray(len(out)))
    assert_same(out, defined(scalar, dtype, args), scalar.name)


@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_casts(source: np.dtype) -> None:
    values = edges(source)
    with consing():
        kernels = [elementwise(lambda x, t=t: cast(x, t), values) for t in DTYPES]
        library = CompiledKernels(kernels)
    for n, (kernel, target) in enumerate(zip(kernels, DTYPES, strict=True)):
        out, interpreted = result_of(kernel), result_of(kernel)
        library.run(n, kernel, [values, out])
        run(kernel, [values, interpreted])
        want = np.array([exact_cast(v, target) for v in values.tolist()], target)
        comparable = F64 if narrow(target) else target  # NumPy takes no NaN of bfloat16 for another
        for got, by in ((interpreted, "NumPy"), (out, "C")):
            np.testing.assert_array_equal(got.astype(comparable), want.astype(comparable), f"{by}, to {target}")


def exact_cast(value: float, target: np.dtype) -> float:
    """By Python's unbounded integers."""
    if target.kind == "b":
        return value != 0
    if target.kind not in "iu":
        with np.errstate(over="ignore"):
            return np.float64(value).astype(target)
    info = np.iinfo(target)
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        return (
            int(min(max(value, info.min), info.max)) if not math.isinf(value) else (info.max if value > 0 else info.min)
        )
    return (int(value) - info.min) % 2**info.bits + info.min


@pytest.mark.parametrize(
    "name, args, want",
    [
        ("div", (7, 0), -1), ("div", (-(2**31), -1), -(2**31)), ("div", (-7, 2), -3), ("rem", (7, 0), 7),
        ("rem", (-(2**31), -1), 0), ("rem", (-7, 2), -1), ("floordiv", (-7, 2), -4), ("mod", (-7, 2), 1),
        ("shift_left", (1, 32), 0), ("shift_left", (1, -1), 0), ("shift_right_logical", (-1, 31), 1),
        ("shift_right_arithmetic", (-8, 100), -1), ("clz", (1,), 31), ("population_count", (-1,), 32),
    ],
)  # fmt: skip
def test_definitions_of_integers(name: str, args: tuple[int, ...], want: int) -> None:
    assert scalars.evaluate(name, *map(np.int32, args)) == want


def test_definitions_of_floats() -> None:
    zero, nan = np.float64(0.0), np.float64(np.nan)
    assert not np.signbit(scalars.evaluate("max", -zero, zero)) and not np.signbit(scalars.evaluate("max", zero, -zero))
    assert np.signbit(scalars.evaluate("min", -zero, zero)) and np.signbit(scalars.evaluate("min", zero, -zero))
    assert np.isnan(scalars.evaluate("max", nan, zero)) and np.isnan(scalars.evaluate("min", zero, nan))
    assert scalars.evaluate("round", np.float64(2.5)) == 3 and scalars.evaluate("round_even", np.float64(2.5)) == 2
    assert scalars.evaluate("round", np.float64(0.49999999999999994)) == 0


@pytest.mark.parametrize("name", ["erf", "erfc", "erf_inv", "lgamma", "digamma"])
def test_special_functions(name: str) -> None:
    exact = {"erf_inv": mpmath.erfinv, "lgamma": lambda x: mpmath.re(mpmath.loggamma(x))}.get(name) or getattr(
        mpmath, name
    )
    points = np.array([-0.99, -0.7, -0.3, 0.01, 0.2, 0.5, 0.9, 0.999, 1 - 1e-12])
    points = points if name == "erf_inv" else np.concatenate([points, [-3.3, 1.4616, 2.5, 4.0, 12.0]])
    want = [float(exact(mpmath.mpf(x))) for x in points]
    np.testing.assert_allclose(scalars.evaluate(name, points), want, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("y", [0, 1, 2, 3, 7, -1, -4])
def test_integer_pow(y: int) -> None:
    x = np.array([-2.5, -1.0, 0.5, 3.0])
    with consing():
        kernel = elementwise(lambda v: integer_pow(v, y), x)
        out = result_of(kernel)
        run(kernel, [x, out])
    np.testing.assert_allclose(out, x**y, rtol=1e-14)


def test_reduce_precision_is_bfloat16_or_float16() -> None:
    x = np.concatenate([np.random.default_rng(0).standard_normal(200) * 1e3, [0.0, -0.0, 1e6, -1e6, np.inf]]).astype(
        F32
    )
    for exponent, mantissa, like in ((8, 7, np.dtype("bfloat16")), (5, 10, np.dtype("float16"))):
        with consing(), np.errstate(over="ignore"):
            kernel = elementwise(lambda v, e=exponent, m=mantissa: reduce_precision(v, e, m), x)
            out = result_of(kernel)
            run(kernel, [x, out])
            np.testing.assert_array_equal(out, x.astype(like).astype(F32))


def test_bitcasts() -> None:
    x = edges(F32)
    with consing():
        kernel = elementwise(lambda v: bitcast(v, "uint32"), x)
        for runner in (run, lambda k, b: CompiledKernels([k]).run(0, k, b)):
            out = result_of(kernel)
            runner(kernel, [x, out])
            np.testing.assert_array_equal(out, x.view(np.uint32))
