"""Elementary functions against mpmath: within 2 ulp over all of float32, with the special values of IEEE 754."""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from cpu.elementwise import DTYPES, compiled, source

from polyax_cpu import compiler, processors
from polyax_cpu.functions import table

F32 = np.float32
UNARY: dict[str, Callable[[mp.mpf], mp.mpf]] = {
    "exp": mp.exp, "exp2": lambda x: mp.mpf(2) ** x, "expm1": mp.expm1, "log": mp.log, "log1p": mp.log1p,
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "asin": mp.asin, "acos": mp.acos, "atan": mp.atan,
    "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh,
    "logistic": lambda x: 1 / (1 + mp.exp(-x)), "sqrt": mp.sqrt, "rsqrt": lambda x: 1 / mp.sqrt(x),
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)), "erf": mp.erf, "erfc": lambda x: mp.erfc(max(min(x, 1e5), -1e5)),
    "lgamma": lambda x: mp.re(mp.loggamma(x)), "digamma": mp.digamma,
}  # fmt: skip
DOMAINS = {
    "log": (0, np.inf), "sqrt": (0, np.inf), "rsqrt": (0, np.inf), "log1p": (-1, np.inf), "asin": (-1, 1),
    "acos": (-1, 1), "atanh": (-1, 1), "acosh": (1, np.inf), "lgamma": (1e-30, 1e30), "digamma": (1e-6, 1e30),
}  # fmt: skip


def samples(name: str, count: int = 300) -> np.ndarray:
    """All exponents, denormals among them, and the neighbourhood of 1, inside the function's domain."""
    rng = np.random.default_rng(len(name))
    anywhere = rng.integers(0, 2**32, 4 * count, dtype=np.uint32).view(F32)
    near = rng.normal(size=count).astype(F32) * F32(3)
    low, high = DOMAINS.get(name, (-np.inf, np.inf))
    usual = rng.uniform(max(low, -20), min(high, 20), count).astype(F32)
    x = np.concatenate([anywhere[:count], near, usual, 1 + near / 1000, anywhere[count:]])
    return x[np.isfinite(x) & (x > low) & (x < high)][: 4 * count]


def ulps(got: np.ndarray, exact: list[mp.mpf]) -> np.ndarray:
    """Errors in units of the last place; results beyond the largest number of the type must be infinite."""
    errors, limits = np.zeros(len(got)), np.finfo(got.dtype)
    digits, least = limits.nmant + 1, int(limits.minexp) - limits.nmant
    top = mp.mpf(2) ** int(limits.maxexp)
    for n, (g, e) in enumerate(zip(got.tolist(), exact, strict=True)):
        if abs(e) >= top * (1 - mp.mpf(2) ** -(digits + 1)):
            errors[n] = 0 if abs(g) >= limits.max and (g > 0) == (e > 0) else np.inf
            continue
        exponent = max(mp.frexp(abs(e))[1] - digits, least) if e else least
        errors[n] = float(abs(mp.mpf(g) - e) / mp.mpf(2) ** exponent) if np.isfinite(g) else np.inf
    return errors


@pytest.mark.parametrize("name", UNARY)
def test_within_two_ulp(name: str) -> None:
    x = samples(name)
    mp.mp.prec = 200 if name in ("sin", "cos", "tan") else 90  # reducing 2^128 takes that many digits
    exact = [UNARY[name](mp.mpf(float(v))) for v in x]
    errors = ulps(compiled(name)(x), exact)
    worst = int(errors.argmax())
    assert errors[worst] <= 2, f"{name}({x[worst]!r}): {errors[worst]:.2f} ulp"


def test_the_inverse_error_function_of_double_precision() -> None:
    rng = np.random.default_rng(0)
    near_one = 1 - 2.0 ** -rng.uniform(1, 53, 300)
    x = np.concatenate([rng.uniform(-1, 1, 300), near_one, -near_one, 10.0 ** rng.uniform(-300, 0, 100)])
    x = x[np.abs(x) < 1]
    mp.mp.prec = 200
    exact = [mp.erfinv(mp.mpf(float(v))) if abs(v) > 1e-9 else mp.mpf(float(v)) * mp.sqrt(mp.pi) / 2 for v in x]
    assert ulps(compiled("erf_inv", type="double")(x), exact).max() <= 4


WAVES = ("sin", "cos", "tan")


def double_samples(name: str) -> np.ndarray:
    """All exponents, ordinary numbers, the neighbourhood of 1, what exponentials neither overflow nor underflow, small
    numbers, and what is close to multiples of pi / 2."""
    rng = np.random.default_rng(len(name))
    anywhere = rng.integers(0, 2**64, 500, dtype=np.uint64).view(np.float64)
    around = [rng.normal(size=300) * 3, 1 + rng.normal(size=300) / 1000, rng.uniform(-1, 1, 300)]
    wide = [rng.uniform(-750, 715, 300), rng.normal(size=300) * 10.0 ** rng.uniform(-9, 3, 300)]
    quarters = [rng.integers(1, 2**k, 100) * (np.pi / 2) for k in (10, 20, 50)]
    x = np.concatenate([anywhere, *around, *wide, *(quarters if name in WAVES else [])])
    low, high = DOMAINS.get(name, (-np.inf, np.inf))
    return x[np.isfinite(x) & (x > low) & (x < high)]


@pytest.mark.parametrize("name", [name for name in table.DOUBLE if name in UNARY])
def test_within_two_ulp_in_double_precision(name: str) -> None:
    x = double_samples(name)
    mp.mp.prec = 1300 if name in WAVES else 150
    errors = ulps(compiled(name, type="double")(x), [UNARY[name](mp.mpf(float(v))) for v in x])
    worst = int(errors.argmax())
    assert errors[worst] <= 2, f"{name}({x[worst]!r}): {errors[worst]:.2f} ulp"


@pytest.mark.parametrize("name", WAVES)
def test_the_float64_next_to_a_multiple_of_a_right_angle(name: str) -> None:
    x = np.array([6381956970095103.0 * 2.0**797, -6381956970095103.0 * 2.0**798])
    mp.mp.prec = 1300
    errors = ulps(compiled(name, type="double")(x), [UNARY[name](mp.mpf(float(v))) for v in x])
    assert errors.max() <= 2


@pytest.mark.parametrize("name, exact", [("pow", mp.power), ("atan2", mp.atan2)])
def test_binary_within_two_ulp(name: str, exact: Callable[[mp.mpf, mp.mpf], mp.mpf]) -> None:
    mp.mp.prec = 90
    rng = np.random.default_rng(3)
    x = np.exp(rng.uniform(-40, 40, 600)).astype(F32)
    y = (rng.normal(size=600) * 10 ** rng.uniform(-3, 1.2, 600)).astype(F32)
    pairs = [(mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(x, y, strict=True)]
    assert ulps(compiled(name, 2)(x, y), [exact(a, b) for a, b in pairs]).max() <= 2


@pytest.mark.parametrize("name, exact", [("pow", mp.power), ("atan2", mp.atan2)])
def test_binary_within_two_ulp_in_double_precision(name: str, exact: Callable[[mp.mpf, mp.mpf], mp.mpf]) -> None:
    """Powers of all sizes, angles of all quadrants; points that lie far apart, and close to the diagonal."""
    mp.mp.prec = 200
    rng = np.random.default_rng(3)
    x, size = np.exp(rng.uniform(-700, 700, 900)), rng.uniform(-740, 705, 900)
    y = size / np.log(x)
    near = 1 + rng.normal(size=300) / 100
    x, y = np.concatenate([x, near]), np.concatenate([y, size[:300] / np.log(near)])
    if name == "atan2":
        y = np.concatenate([np.exp(rng.uniform(-700, 700, 300)), x[300:] * (1 + rng.normal(size=900))])
        x, y = x * rng.choice([-1, 1], len(x)), y * rng.choice([-1, 1], len(y))
    pairs = [(mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(x, y, strict=True)]
    errors = ulps(compiled(name, 2, "double")(x, y), [exact(a, b) for a, b in pairs])
    worst = int(errors.argmax())
    assert errors[worst] <= 2, f"{name}({x[worst]!r}, {y[worst]!r}): {errors[worst]:.2f} ulp"


NAN, INF = np.nan, np.inf
SPECIAL = {
    "exp": {INF: INF, -INF: 0.0, 0.0: 1.0, 89.0: INF, -110.0: 0.0},
    "exp2": {INF: INF, -INF: 0.0, 10.0: 1024.0, -149.0: 2.0**-149, 128.0: INF},
    "expm1": {INF: INF, -INF: -1.0, -0.0: -0.0, 1e-40: 1e-40},
    "log": {INF: INF, 0.0: -INF, -1.0: NAN, 1.0: 0.0},
    "log1p": {INF: INF, -1.0: -INF, -2.0: NAN, -0.0: -0.0, 1e-40: 1e-40},
    "sin": {INF: NAN, -INF: NAN, -0.0: -0.0, 1e-40: 1e-40},
    "cos": {INF: NAN, 0.0: 1.0},
    "tan": {INF: NAN, -0.0: -0.0},
    "tanh": {INF: 1.0, -INF: -1.0, -0.0: -0.0},
    "logistic": {INF: 1.0, -INF: 0.0, 0.0: 0.5},
    "sqrt": {-1.0: NAN, -0.0: -0.0, INF: INF},
    "rsqrt": {0.0: INF, INF: 0.0, -1.0: NAN},
    "asin": {1.5: NAN, -0.0: -0.0},
    "acos": {-1.5: NAN, 1.0: 0.0},
    "atan": {INF: np.pi / 2, -INF: -np.pi / 2, -0.0: -0.0},
    "acosh": {0.5: NAN, -1e10: NAN, 1.0: 0.0, INF: INF},
    "atanh": {1.0: INF, -1.0: -INF, 2.0: NAN},
    "asinh": {INF: INF, -INF: -INF, -0.0: -0.0},
    "cbrt": {-27.0: -3.0, INF: INF, -0.0: -0.0},
    "erf": {INF: 1.0, -INF: -1.0, -0.0: -0.0},
    "erfc": {INF: 0.0, -INF: 2.0, 0.0: 1.0, 1e-9: 1.0, -1e-9: 1.0, 10.2: 0.0},
    "erf_inv": {1.0: INF, -1.0: -INF, 2.0: NAN, 0.0: 0.0},
    "lgamma": {0.0: INF, -1.0: INF, -INF: INF, 1.0: 0.0, 2.0: 0.0},
    "digamma": {-1.0: NAN, INF: INF},
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str) -> None:
    x, expected = (np.array(list(v), F32) for v in (SPECIAL[name].keys(), SPECIAL[name].values()))
    got = compiled(name)(np.append(x, F32(NAN)))
    np.testing.assert_array_equal(got, np.append(expected, F32(NAN)))
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[:-1])[numbers], np.signbit(expected)[numbers])


DOUBLE_SPECIAL = {
    "exp": {89.0: np.exp(89.0), -110.0: np.exp(-110.0), 710.0: INF, -750.0: 0.0},
    "exp2": {128.0: 2.0**128, 1024.0: INF, -1074.0: 2.0**-1074, -1076.0: 0.0},
    "expm1": {1e-310: 1e-310, 710.0: INF},
    "sinh": {-0.0: -0.0, INF: INF, -INF: -INF, 711.0: INF, 1e-310: 1e-310},
    "cosh": {0.0: 1.0, INF: INF, -INF: INF, 711.0: INF},
    "log1p": {1e-310: 1e-310},
    "sin": {1e-310: 1e-310},
    "tanh": {1e-310: 1e-310, 5e-324: 5e-324},
    "asinh": {1e-310: 1e-310},
    "cbrt": {-0.125: -0.5, -INF: -INF, 5e-324: 1.7031839360032603e-108},
    "erfc": {27.5: 0.0, 10.2: 3.603830400924666e-47, 1e-9: 0.9999999988716208, -1e-9: 1.0000000011283792},
    "erf": {5e-324: 5e-324, 6.0: 1.0},
    "atan": {1e308: np.pi / 2, 1e-310: 1e-310},
}


@pytest.mark.parametrize("name", [name for name in table.DOUBLE if name in SPECIAL.keys() | DOUBLE_SPECIAL.keys()])
def test_special_values_in_double_precision(name: str) -> None:
    found = SPECIAL.get(name, {}) | DOUBLE_SPECIAL.get(name, {})
    x, expected = np.array(list(found)), np.array(list(found.values()))
    got = compiled(name, type="double")(np.append(x, NAN))
    np.testing.assert_allclose(got, np.append(expected, NAN), rtol=3e-16)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[:-1])[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("type", DTYPES)
def test_pow_follows_c(type: str) -> None:
    x = np.array([0, -0.0, -2, -2, -2, 1, -1, INF, -INF, 0, NAN, 2, 0.5, NAN, 5, INF, -INF, -INF, 0, -0.0, 1e-30])
    y = np.array([-1, -3, 3, 2, 0.5, NAN, INF, 0, 3, 0, 0, INF, INF, 2, NAN, -2, -3, 2, INF, 3, INF])
    expected = np.array(
        [INF, -INF, -8, 4, NAN, 1, 1, 1, -INF, 1, 1, INF, 0, NAN, NAN, 0, -0.0, INF, 0, -0.0, 0], DTYPES[type]
    )
    got = compiled("pow", 2, type)(x, y)
    np.testing.assert_array_equal(got, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("type", DTYPES)
def test_atan2_of_zeros_and_infinities(type: str) -> None:
    values = np.array([0.0, -0.0, 1, -1, 1e-18, 1e18, INF, -INF, NAN], DTYPES[type])
    y, x = (v.ravel() for v in np.meshgrid(values, values))
    got, expected = compiled("atan2", 2, type)(y, x), np.arctan2(y.astype(float), x.astype(float))
    np.testing.assert_allclose(got, expected, rtol=4 * np.finfo(DTYPES[type]).eps)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("type", DTYPES)
@pytest.mark.parametrize("lanes", [False, True])
def test_remainders_are_exact(lanes: bool, type: str) -> None:
    """Of any numbers, multiples and their neighbours; most quotients of the first are longer than a double."""
    dtype, rng = DTYPES[type], np.random.default_rng(0)
    anything = rng.integers(0, 256, 40000 * dtype().itemsize, dtype=np.uint8).view(dtype)
    x, y = np.array_split(anything[np.isfinite(anything)][:30000], 2)
    limits = np.finfo(dtype)
    values = [0.0, -0.0, 1, -1, 0.1, 3, INF, -INF, NAN, limits.max, limits.tiny, limits.smallest_subnormal]
    specials = np.array(np.meshgrid(values, values), dtype).reshape(2, -1)
    with np.errstate(all="ignore"):
        multiples = (rng.integers(-999, 999, len(y)) * y).astype(dtype)
        x = np.concatenate([specials[0], x, multiples, np.nextafter(multiples, dtype(0)), y * dtype(1.7e9)])
        y = np.concatenate([specials[1], y, y, y, y])
        expected = np.fmod(x, y)
    got, numbers = compiled("rem", 2, type, lanes=lanes)(x, y), ~np.isnan(expected)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("type", DTYPES)
def test_one_large_quotient_among_small_ones(type: str) -> None:
    x, y = np.linspace(1, 9, 37, dtype=DTYPES[type]), np.full(37, 0.7, DTYPES[type])
    x[[5, 30]] = 1e30
    np.testing.assert_array_equal(compiled("rem", 2, type, lanes=True)(x, y), np.fmod(x, y))


def test_angles_of_the_largest_and_smallest_float64() -> None:
    values = np.array([5e-324, 1e-310, 3e-300, 1e-160, 1.0, 1e160, 1e300, 1.7e308])
    y, x = (v.ravel() for v in np.meshgrid(values, -values))
    np.testing.assert_allclose(compiled("atan2", 2, "double")(y, x), np.arctan2(y, x), rtol=4e-16)
    np.testing.assert_allclose(compiled("atan2", 2, "double")(y, -x), np.arctan2(y, -x), rtol=4e-16)


@pytest.mark.parametrize("type", DTYPES)
@pytest.mark.parametrize("lanes", [1, 7, 8, 100])
def test_one_large_argument_among_small_ones(lanes: int, type: str) -> None:
    """The correction for large arguments must not touch the other lanes of its vector."""
    x = np.linspace(0, 1, lanes, dtype=DTYPES[type])
    x[lanes // 2] = 1e30
    near = {"rtol": 2e-7, "atol": 1e-10} if type == "float" else {"rtol": 4e-16}
    np.testing.assert_allclose(compiled("sin", type=type)(x), np.sin(x.astype(float)), **near)


@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("name, type", [(n, t) for n in ("exp", "exp2", "logistic") for t in DTYPES])
def test_subnormal_results(name: str, type: str, lanes: bool) -> None:
    """They are counted: alone, all together, one among others; and what is below them is zero."""
    limits, base = np.finfo(DTYPES[type]), 2 if name == "exp2" else np.e
    least, first = (float(n) * np.log(2) / np.log(base) for n in (limits.minexp - limits.nmant - 1, limits.minexp))
    x = np.concatenate([np.linspace(least - 1, first + 1, 1000), [0.5] * 33, [first - 3], [-1.0] * 31, [-1e9, -np.inf]])
    x = x.astype(DTYPES[type])
    mp.mp.prec = 120
    exact = [UNARY[name](mp.mpf(float(v))) if v > -1e9 else mp.mpf(0) for v in x]
    got = compiled(name, type=type, lanes=lanes)(x)
    assert ulps(got, exact).max() <= 2
    assert (got[-2:] == 0).all() and ((got > 0) & (got < limits.tiny)).sum() > 100


LONG = [(name, type) for type, known in (("float", table.FLOAT), ("double", table.DOUBLE)) for name in known]


@pytest.mark.parametrize("name, type", LONG)
def test_called_functions_and_lanes_give_the_bits_of_inlined_ones(name: str, type: str) -> None:
    arity, dtype = 2 if name in ("pow", "atan2", "rem") else 1, DTYPES[type]
    anything = np.random.default_rng(arity).integers(0, 256, 5000 * dtype().itemsize, dtype=np.uint8).view(dtype)
    special = np.array([0, -0.0, INF, -INF, NAN, 1, 2, 1e30], dtype)
    x = np.array_split(np.concatenate([anything, special]), arity)
    ways = [(shared, lanes) for shared in (False, True) for lanes in (False, True)]
    assert len({compiled(name, arity, type, *way)(*x).tobytes() for way in ways}) == 1


@pytest.mark.parametrize("name", ["exp", "sin", "pow"])
def test_loops_call_the_variants_for_vectors(name: str) -> None:
    text = str(compiler.optimize(source(name, 2 if name == "pow" else 1, shared=True)))
    loop = text[text.index("define void @k") :]
    assert f"@polyax_{name}_float_shared_v{processors.host().vector_bits // 32}(" in loop


def test_loops_over_functions_vectorise() -> None:
    for name in ("exp", "log", "sin", "tanh", "erf", "pow"):
        text = str(compiler.optimize(source(name, 2 if name == "pow" else 1)))
        assert "<8 x float>" in text or "<16 x float>" in text or "<4 x float>" in text, name


@pytest.mark.parametrize("name", table.DOUBLE)
def test_loops_over_functions_of_double_precision_vectorise(name: str) -> None:
    text = str(compiler.optimize(source(name, 2 if name in ("pow", "atan2", "rem") else 1, "double")))
    loop = text[text.index("define void @k") :]
    assert f"<{processors.host().vector_bits // 64} x double>" in loop


@pytest.mark.parametrize("name", ["erf", "erfc", "sinh", "cosh", "tanh", "asinh", "acosh"])
def test_functions_stay_in_single_precision(name: str) -> None:
    """Vectors of float64 have half as many elements."""
    assert "double" not in source(name, 1)
