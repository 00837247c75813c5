"""Narrow types: bytes hold their codes, and each step computes in a wider type and rounds its result."""

import ml_dtypes
import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.ir import dtypes

RANDOM = np.random.default_rng(0)
FLOATS = list(dtypes.NARROW_FLOATS.values())
COMPUTING = [d for d in FLOATS if d.name not in ("float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn")]
INTS = [dtypes.NARROW_INTS[n] for n in ("int2", "uint2", "int4", "uint4")]
names = lambda d: d.name


def every(dtype):
    """All numbers of a type."""
    return np.arange(1 << dtypes.bits_of(dtype), dtype=np.uint8).view(dtype)


def alike(got, want):
    """The same bits, but for those of NaN."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    unknown = np.isnan(want.astype(np.float32))
    assert (unknown == np.isnan(got.astype(np.float32))).all()
    assert (got.view(np.uint8)[~unknown] == want.view(np.uint8)[~unknown]).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=names)
def test_conversions_go_to_the_nearest(dtype):
    exact = every(dtype).astype(np.float32)
    random = RANDOM.standard_normal(5000) * 10.0 ** RANDOM.uniform(-12, 8, 5000)
    x = np.concatenate([random, exact, (exact[1:] + exact[:-1]) / 2, [np.inf, -np.inf, np.nan, 0, -0.0]])
    x = x.astype(np.float32)
    alike(jnp.asarray(x).astype(dtype), x.astype(dtype))
    back = np.asarray(jnp.asarray(every(dtype)).astype("float32"))
    assert np.array_equal(back, exact, equal_nan=True) and (np.signbit(back) == np.signbit(exact))[exact == 0].all()


@pytest.mark.parametrize("dtype", COMPUTING, ids=names)
def test_each_step_of_floats_is_rounded(dtype):
    x = every(dtype)
    y = RANDOM.permutation(x)
    with np.errstate(all="ignore"):
        half, other = x.astype(np.float16), y.astype(np.float16)
        alike(jnp.asarray(x) + y, (half + other).astype(dtype))
        alike(
            jnp.asarray(x) * jnp.asarray(y) - 1.5, ((half * other).astype(dtype).astype(np.float16) - 1.5).astype(dtype)
        )
        assert ((jnp.asarray(x) < y) == (half < other)).all() and ((jnp.asarray(x) == x) == (half == half)).all()
    finite = x[np.isfinite(half)]
    ordered = jnp.sort(jnp.asarray(finite))
    assert (np.diff(np.asarray(ordered).astype(np.float32)) >= 0).all()
    assert (
        float(jnp.max(finite)) == finite.astype(np.float32).max()
        and int(jnp.argmin(finite)) == half[np.isfinite(half)].argmin()
    )


@pytest.mark.parametrize("dtype", INTS, ids=names)
def test_integers_wrap_around(dtype):
    info = ml_dtypes.iinfo(dtype)
    x, y = (a.ravel() for a in np.meshgrid(*[np.arange(int(info.min), int(info.max) + 1)] * 2))
    a, b = (jnp.asarray(v.astype(dtype)) for v in (x, y))

    def wrapped(v):
        return ((v - int(info.min)) % (1 << info.bits)) + int(info.min)

    for op in (np.add, np.subtract, np.multiply, np.maximum, np.bitwise_xor):
        got = getattr(jnp, op.__name__)(a, b)
        assert got.dtype == dtype and (np.asarray(got).astype(int) == wrapped(op(x, y))).all(), op
    assert (np.asarray(a + 1).astype(int) == wrapped(x + 1)).all() and not (a + 1).weak_type
    assert (np.asarray(-a).astype(int) == wrapped(-x)).all() and ((a < b) == (x < y)).all()
    assert int(a.sum(dtype=dtype)) == wrapped(x.sum()) and int(lax.dot(a, b)) == wrapped(x @ y)
    assert int(jnp.max(a)) == info.max and np.asarray(jnp.sort(a)).astype(int).tolist() == sorted(x)
    assert int(lax.reduce_max(a[:0], (0,))) == info.min and int(lax.reduce_min(a[:0], (0,))) == info.max


def test_bits():
    x = jnp.array([-1, 7, -8, 1], jnp.int4)
    assert lax.shift_right_logical(x, jnp.ones_like(x)).tolist() == [7, 3, 4, 0]
    assert lax.population_count(x).tolist() == [4, 3, 1, 1] and lax.clz(x).tolist() == [0, 1, 0, 3]
    assert lax.bitcast_convert_type(jnp.array([18, 250], "uint8"), jnp.int4).tolist() == [[2, 1], [-6, -1]]
    assert lax.bitcast_convert_type(x.reshape(2, 2), "uint8").tolist() == [0x7F, 0x18]
    up = lax.nextafter(jnp.array([1, 0, -1.5, 448], jnp.float8_e4m3fn), jnp.full(4, 448, jnp.float8_e4m3fn))
    assert up.tolist() == [1.125, 2.0**-9, -1.375, 448]


def test_transformations_and_control_flow():
    x = jnp.array([1, -2.5, 3], jnp.float8_e5m2)
    slope = polyax.grad(lambda v: (v * v).sum().astype("float32"))(x)
    assert slope.dtype == x.dtype and slope.tolist() == [2, -5, 6]
    by_rows = polyax.jit(polyax.vmap(lambda v: lax.fori_loop(0, 3, lambda i, c: c + c, v)))
    assert by_rows(jnp.arange(6, dtype=jnp.int4).reshape(2, 3)).tolist() == [[0, -8, 0], [-8, 0, -8]]
    total, each = lax.scan(lambda c, a: (c + a, c * a), jnp.zeros((), x.dtype), x)
    assert total.tolist() == 1.5 and each.tolist() == [0, -2.5, -4]
    chosen = polyax.jit(lambda p, v: lax.cond(p, lambda a: a + 1, lambda a: a - 1, v))
    assert chosen(True, x).tolist() == [2, -1.5, 4] and jnp.where(x > 0, x, 0).tolist() == [1, 0, 3]
    assert lax.reduce_window(x, x.dtype.type(-np.inf), lax.max, (2,), (1,), "VALID").tolist() == [1, 3]
    assert x.at[jnp.array([0, 0, 9])].add(1, mode="drop").tolist() == [3, -2.5, 3]
    missing = jnp.arange(3).astype(jnp.int4).at[jnp.array([1, 9])].get(mode="fill")
    assert missing.tolist() == [1, -8]


def test_callbacks_get_values(capsys):
    x = jnp.array([1, -2, 3], jnp.int4)
    seen = []

    def reverse(v):
        seen.append(v.dtype)
        return v[::-1]

    assert polyax.pure_callback(reverse, x, x).tolist() == [3, -2, 1] and seen == [x.dtype]
    polyax.jit(lambda v: polyax.debug.print("{}", v))(x)
    polyax.effects_barrier()
    assert capsys.readouterr().out == "[ 1 -2  3]\n"


def test_types_do_not_meet():
    x = jnp.ones(2, jnp.float8_e4m3fn)
    for other in (jnp.ones(2, jnp.float8_e5m2), jnp.ones(2, "float32"), jnp.ones(2, "bfloat16"), 1j):
        with pytest.raises(dtypes.TypePromotionError):
            x + other
    with pytest.raises(dtypes.TypePromotionError):
        jnp.ones(2, jnp.int4) + 1.5
    assert (x + jnp.ones(2, "int32")).dtype == x.dtype
