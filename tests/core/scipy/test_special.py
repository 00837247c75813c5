"""Special functions against SciPy."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import scipy.special

import polyax
import polyax.numpy as jnp
from polyax import lax
from polyax.scipy import special, stats
from support.rows import Row, agree, check_derivatives, check_jit, check_values, check_vmap

X = np.array([-2.5, -0.5, 0.25, 0.75, 1.5, 3.0])
WIDE = np.array([-30.0, -7.5, -1.3, -0.2, 0.3, 1.25, 4.5, 9.0, 60.0])
UNIT = np.array([0.01, 0.2, 0.5, 0.9])
POSITIVE = np.array([0.1, 0.5, 1.0, 2.5, 7.0])
SHAPES, PLACES = (x.ravel() for x in np.meshgrid([0.3, 1.0, 4.5, 40.0, 250.0], [0.05, 0.9, 4.0, 35.0, 260.0]))
A, B, C = (x.ravel() for x in np.meshgrid([0.4, 1.0, 7.0], [0.6, 3.0, 20.0], [0.03, 0.4, 0.85]))
COMPLEX = np.array([0.5 + 0.25j, 3 - 0.5j, -2 + 4j, -1.5 - 0.75j, 7 + 7j, 0.1 + 9j, 6.2 + 0.01j])
Q = np.array([0.0, 2.0])


def row(name, *args, wrt=(), oracle=None, **how):
    params = how.pop("params", {})
    fun = partial(getattr(special, name), **params) if params else getattr(special, name)
    return Row(fun, oracle or getattr(scipy.special, name), args, wrt, **how)


ROWS = {
    "erf": row("erf", X, wrt=(0,)),
    "erfc": row("erfc", X, wrt=(0,)),
    "erfinv": row("erfinv", UNIT, wrt=(0,)),
    "expit": row("expit", X, wrt=(0,)),
    "gammaln": row("gammaln", POSITIVE, wrt=(0,)),
    "digamma": row("digamma", POSITIVE, wrt=(0,)),
    "logit": row("logit", UNIT, wrt=(0,)),
    "entr": row("entr", POSITIVE, wrt=(0,)),
    "gamma": row("gamma", X, wrt=(0,)),
    "xlogy": row("xlogy", Q, np.array([0.0, 3.0])),
    "xlog1py": row("xlog1py", Q, np.array([-1.0, 3.0])),
    "rel_entr": row("rel_entr", POSITIVE, POSITIVE[::-1].copy(), wrt=(0, 1)),
    "kl_div": row("kl_div", POSITIVE, POSITIVE[::-1].copy(), wrt=(0, 1)),
    "betaln": row("betaln", POSITIVE, 2.0, wrt=(0, 1)),
    "beta": row("beta", POSITIVE, 1.5, wrt=(0, 1)),
    "factorial": row("factorial", POSITIVE, wrt=(0,)),
    "poch": row("poch", POSITIVE, 2.0, wrt=(0, 1)),
    "ndtr": row("ndtr", X, wrt=(0,)),
    "ndtri": row("ndtri", UNIT, wrt=(0,)),
    "boxcox": row("boxcox", POSITIVE, 0.5, wrt=(0, 1)),
    "boxcox1p": row("boxcox1p", POSITIVE, 0.0),
    "zeta": row("zeta", POSITIVE + 1, 1.5, wrt=(1,)),
    "polygamma": row("polygamma", 2, POSITIVE, wrt=(1,)),
    "multigammaln": row("multigammaln", POSITIVE + 2, 3, wrt=(0,)),
    "gammasgn": row("gammasgn", X),
    "softmax": row("softmax", X, wrt=(0,)),
    "log_softmax": row("log_softmax", X, wrt=(0,)),
    "logsumexp": row("logsumexp", X, wrt=(0,)),
    "gammainc": row("gammainc", SHAPES, PLACES, wrt=(0, 1), rtol=1e-11, coarse=1e-4, slope=1e-5),
    "gammaincc": row("gammaincc", SHAPES, PLACES, wrt=(0, 1), rtol=1e-11, coarse=1e-4, slope=1e-5),
    "betainc": row("betainc", A, B, C, wrt=(0, 1, 2), rtol=1e-11, coarse=1e-4, slope=1e-5),
    "comb": row("comb", np.array([5.0, 6.5, 3.0, 4.0]), np.array([2.0, 3.0, 4.0, 0.0])),
    "bernoulli": row("bernoulli", 40),
    "loggamma": row("loggamma", np.array([0.1, 2.5, 30.0, -1.5]), rtol=1e-10),
    "loggamma, complex": row("loggamma", COMPLEX, wrt=()),
    "i0": row("i0", X, wrt=(0,)),
    "i0e": row("i0e", WIDE, wrt=(0,)),
    "i1": row("i1", X, wrt=(0,)),
    "i1e": row("i1e", WIDE, wrt=(0,)),
    "bessel_jn": row(
        "bessel_jn",
        np.array([-3.0, 0.2, 1.5, 12.0]),
        wrt=(0,),
        oracle=lambda z: np.stack([scipy.special.jv(k, z) for k in range(5)]),
        coarse=1e-4,
        params={"v": 4},
    ),
    "wofz": row("wofz", COMPLEX),
    "erfcx": row("erfcx", np.array([-4.0, -0.3, 0.2, 0.9, 3.0, 8.0, 90.0]), wrt=(0,)),
    "dawsn": row("dawsn", WIDE, wrt=(0,)),
    "fresnel": row("fresnel", np.array([-2.2, -0.4, 0.1, 0.9, 1.19, 1.21, 3.3, 8.1]), wrt=(0,), coarse=1e-4),
    "log_ndtr": row("log_ndtr", WIDE, wrt=(0,), slope=1e-5),
    "exp1": row("exp1", np.array([0.01, 0.5, 1.0, 1.1, 4.0, 30.0]), wrt=(0,)),
    "expi": row("expi", np.array([-4.0, -0.5, 0.01, 0.5, 3.0, 30.0, 50.0]), wrt=(0,), coarse=1e-4),
    "expn": row("expn", np.array([0, 1, 2, 5, 3, 40]), np.array([0.5, 0.5, 0.2, 0.9, 3.0, 2.0]), wrt=(1,)),
    "sici": row("sici", np.array([-5.0, -1.0, 0.1, 0.9, 3.9, 4.1, 17.0]), wrt=(0,), coarse=1e-4),
    "spence": row("spence", np.array([0.0, 0.1, 0.49, 0.9, 1.0, 1.7, 3.0, 50.0])),
    "spence, by x": row("spence", np.array([0.1, 0.49, 0.9, 1.7, 3.0, 50.0]), wrt=(0,)),
    "owens_t": row("owens_t", np.array([0.0, 0.5, -1.5, 3.0, 2.0]), np.array([0.3, -2.0, 0.9, 5.0, 1.0]), wrt=(0, 1)),
    "hyp1f1": row(
        "hyp1f1",
        np.array([0.5, 1.5, 2.0, -1.5, 0.7]),
        np.array([1.5, 2.5, 0.5, 2.5, 3.2]),
        np.array([-20.0, -0.5, 0.9, 6.0, -250.0]),
        rtol=1e-10,
    ),
    "hyp1f1, slopes": row(
        "hyp1f1", np.array([0.5, 1.5, 2.0]), np.array([1.5, 2.5, 0.5]), np.array([-3.0, -0.5, 0.9]), wrt=(0, 1, 2)
    ),
    "hyp2f1": row(
        "hyp2f1",
        np.array([0.5, 1.5, 0.3, 1.0, -2.0, 0.25]),
        np.array([1.2, 0.7, 0.4, 1.0, 1.5, 0.5]),
        np.array([2.5, 2.0, 1.9, 2.0, 0.7, 1.6]),
        np.array([-8.0, 0.3, 0.95, 0.6, 0.99, -0.4]),
        rtol=1e-10,
        coarse=1e-4,
    ),
    "hyp2f1, slopes": row(
        "hyp2f1",
        np.array([0.5, 1.5]),
        np.array([1.2, 0.7]),
        np.array([2.5, 2.0]),
        np.array([-1.5, 0.3]),
        wrt=(0, 1, 2, 3),
    ),
    "sph_harm_y": row(
        "sph_harm_y",
        np.array([0, 1, 3, 6, 4]),
        np.array([0, -1, 2, -5, 0]),
        np.array([0.5, 1.0, 2.0, 0.3, 1.2]),
        np.array([0.3, 4.0, 1.0, 2.0, 6.0]),
        wrt=(2, 3),
        params={"n_max": 6},
    ),
}

every_row = pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))


@every_row
def test_agrees_with_scipy(row):
    check_values(row)


@pytest.mark.parametrize("row", [r for r in ROWS.values() if r.wrt], ids=[n for n, r in ROWS.items() if r.wrt])
def test_derivatives_agree_with_finite_differences(row):
    check_derivatives(row)


@every_row
def test_compiled_is_eager(row):
    check_jit(row)


@pytest.mark.parametrize("name", [n for n in ROWS if n != "bernoulli"])
def test_mapped_is_a_loop(name):
    check_vmap(ROWS[name])


def test_products_with_zero():
    assert special.xlogy(0.0, np.array([0.0, -1.0, np.inf, 2.0])).tolist() == [0.0] * 4
    assert polyax.grad(special.xlogy)(0.0, 2.0) == pytest.approx(np.log(2.0))
    assert polyax.grad(special.xlog1py)(0.0, 1.0) == pytest.approx(np.log(2.0))
    assert np.isnan(special.xlogy(0.0, np.nan)) and special.xlog1py(0.0, -1.0) == 0
    assert polyax.grad(special.xlogy)(0.0, 0.0) == -np.inf and polyax.grad(special.xlogy, 1)(0.0, 0.0) == 0


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_products_with_logarithms_of_complex_numbers(name):
    x, y = np.array([0, 0, 1 + 2j, 3, 0.5j]), np.array([0, 1j, -2 + 1j, 1j, -3])
    agree(getattr(special, name)(x, y), getattr(scipy.special, name)(x, y), 1e-6)
    with polyax.enable_x64(True):
        slope = polyax.grad(lambda x: getattr(special, name)(x, 2j).real)(1.5)
    assert slope == pytest.approx(np.log(2j + (name == "xlog1py")).real)


@pytest.mark.parametrize(
    "name", ["gammainc", "betainc", "erfcx", "fresnel", "expn", "hyp2f1", "owens_t", "log_ndtr", "sici"]
)
def test_runs_compiled_on_the_cpu(name):
    with polyax.default_device("cpu"):
        check_values(ROWS[name])


def test_limits_of_incomplete_functions():
    """As the distributions have them: all at 0, all at infinity, and NaN where neither says anything."""
    edges = [(0.0, 1.0), (1.0, 0.0), (np.inf, 1.0), (1.0, np.inf)]
    assert [float(special.gammainc(a, x)) for a, x in edges] == [1, 0, 0, 1]
    assert [float(special.gammaincc(a, x)) for a, x in edges] == [0, 1, 1, 0]
    undefined = [(0.0, 0.0), (-1.0, 1.0), (1.0, -1.0), (np.inf, np.inf), (np.nan, 1.0)]
    assert all(np.isnan(special.gammainc(a, x)) for a, x in undefined)
    edges = [(0.0, 1.0, 0.5), (1.0, 0.0, 0.5), (2.0, 3.0, 0.0), (2.0, 3.0, 1.0), (np.inf, 1.0, 0.5), (1.0, np.inf, 0.5)]
    assert [float(special.betainc(*edge)) for edge in edges] == [1, 0, 0, 1, 0, 1]
    assert all(np.isnan(special.betainc(*edge)) for edge in [(0.0, 0.0, 0.5), (1.0, 1.0, 1.5), (-1.0, 1.0, 0.5)])


def test_infinite_arguments():
    inf = np.array([np.inf, -np.inf])
    agree(special.fresnel(inf), [np.array([0.5, -0.5])] * 2, 1e-6)
    agree(special.dawsn(inf), np.zeros(2), 1e-6)
    agree(special.sici(inf)[0], np.array([np.pi / 2, -np.pi / 2]), 1e-6)
    assert special.sici(np.inf)[1] == 0 and np.isnan(special.sici(-np.inf)[1])
    assert special.erfcx(np.inf) == 0 and special.expi(np.inf) == np.inf and special.exp1(np.inf) == 0


NUMBERS = np.array([-3.0, -2.0, -1.0, 0.0, -2.5, -0.5, 0.5, 1.0, 2.0, 4.0, 9.5])
PAIRS = tuple(x.ravel() for x in np.meshgrid(NUMBERS, NUMBERS))


def test_rising_factorials_of_large_numbers_lose_no_digits():
    z = np.array([170.0, 1e4, 1e8, 1e16, 1e30, -745.0, -1e8, 1e10], np.float32)
    m = np.array([0.5, 1.0, 2.0, 0.5, 1.0, 2.0, 1.0, -2.0], np.float32)
    np.testing.assert_allclose(special.poch(z, m), scipy.special.poch(z.astype(float), m), rtol=1e-5)


@pytest.mark.parametrize("name", ["beta", "betaln", "poch"])
def test_quotients_of_gamma_functions_at_their_poles(name):
    got, want = np.asarray(getattr(special, name)(*PAIRS)), getattr(scipy.special, name)(*PAIRS)
    infinite = np.isinf(want)
    np.testing.assert_array_equal(np.isinf(got), infinite)
    np.testing.assert_allclose(got[~infinite], want[~infinite], rtol=1e-5, atol=1e-6)


def test_slopes_of_rising_factorials():
    assert polyax.grad(special.poch)(-0.5, 2.0) == pytest.approx(0.0, abs=1e-6)  # of z (z + 1)
    assert polyax.grad(special.poch)(-2.5, 2.0) == pytest.approx(-4.0, rel=1e-5)
    assert special.poch(2.0, 3).weak_type is False


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_binomial_coefficients_of_large_numbers(dtype):
    """As exact as exponentials of their logarithms can be."""
    n, k = np.array([1e4, 1e6, 1000.0, 100.0, 60.0, 5.5]), np.array([2.0, 1.0, 3.0, 50.0, 30.0, 2.5])
    want = scipy.special.comb(n, k)
    with polyax.enable_x64(dtype == np.float64):
        got = np.asarray(special.comb(n.astype(dtype), k.astype(dtype)), np.float64)
    assert (abs(got / want - 1) < 3 * np.finfo(dtype).eps * np.log(want)).all()


@pytest.mark.parametrize("dtype, rtol", [(np.float32, 1e-5), (np.float64, 1e-12)])
def test_upper_incomplete_gamma_function_of_small_shapes(dtype, rtol):
    a, x = np.meshgrid([1e-20, 1e-8, 1e-3, 0.1, 0.3, 0.49], [1e-10, 1e-3, 0.1, 0.7, 1.0, 3.0])
    with polyax.enable_x64(dtype == np.float64):
        a, x = a.astype(dtype), x.astype(dtype)
        np.testing.assert_allclose(special.gammaincc(a, x), scipy.special.gammaincc(a, x), rtol=rtol)


def test_derivatives_of_bessel_functions_near_zero():
    twice = polyax.vmap(polyax.grad(polyax.grad(special.i1e)))
    assert np.abs(twice(jnp.array([0.0, 1e-30, 1e-8]))).max() == 0.0
    thrice = polyax.vmap(polyax.grad(polyax.grad(polyax.grad(special.i0e))))
    np.testing.assert_allclose(thrice(jnp.array([1e-30, 1e-8])), -1.5, rtol=1e-6)


def test_dilogarithm_at_infinity():
    assert np.isnan(special.spence(np.inf))


REFUSED = {
    "entr": (lambda: special.entr(1j), ValueError, "entr does not support complex"),
    "rel_entr": (lambda: special.rel_entr(1j, 1.0), ValueError, "rel_entr does not support complex"),
    "kl_div": (lambda: special.kl_div(1j, 1.0), ValueError, "kl_div does not support complex"),
    "poch": (lambda: special.poch(1j, 1.0), ValueError, "poch does not support complex"),
    "zeta": (lambda: special.zeta(2.0), NotImplementedError, "q=1"),
    "polygamma": (lambda: special.polygamma(1.5, 2.0), ValueError, "integer type"),
}


@pytest.mark.parametrize("call, error, text", REFUSED.values(), ids=list(REFUSED))
def test_bad_arguments_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_number_of_variates_becomes_an_integer():
    assert special.multigammaln(4.0, 2.9) == special.multigammaln(4.0, 2)
    assert special.multigammaln(4.0, 2).weak_type is False


def test_log_sums_of_complex_numbers_with_their_direction():
    z = np.array([1 + 2j, 3 - 1j, -1j], np.complex64)
    size, sign = special.logsumexp(z, return_sign=True)
    total = np.exp(z.astype(complex)).sum()
    assert size.dtype == np.float32 and sign.dtype == np.complex64
    np.testing.assert_allclose(size, np.log(abs(total)), rtol=1e-6)
    np.testing.assert_allclose(sign, total / abs(total), rtol=1e-6)
    assert special.logsumexp(z, b=-1.0).dtype == np.complex64


def test_gamma_numbers_move_with_their_shape():
    """x(a) at a constant place in the distribution: dx/da = -(dP/da) / (dP/dx)."""
    with polyax.enable_x64(True):
        for a, p in [(0.3, 0.2), (2.5, 0.7), (30.0, 0.5), (8.0, 0.999)]:
            x = scipy.special.gammaincinv(a, p)
            moved = [scipy.special.gammaincinv(a * (1 + d), p) for d in (-1e-5, 1e-5)]
            want = (moved[1] - moved[0]) / (2e-5 * a)
            assert float(lax.random_gamma_grad(a, x)) == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scaled_tails_are_accurate_everywhere(dtype):
    """``erfcx``, and the logarithm of the normal distribution with its slope."""
    eps = np.finfo(dtype).eps
    with polyax.enable_x64(dtype == np.float64):
        x = np.concatenate([[0.0], np.geomspace(1e-6, 1e8, 400)]).astype(dtype)
        np.testing.assert_allclose(special.erfcx(x), scipy.special.erfcx(x.astype(float)), rtol=12 * eps)
        x = np.concatenate([-np.geomspace(1e4, 1e-6, 400), np.linspace(0, 3, 50)]).astype(dtype)
        wide = x.astype(float)
        np.testing.assert_allclose(special.log_ndtr(x), scipy.special.log_ndtr(wide), rtol=12 * eps)
        slopes = math.sqrt(2 / math.pi) / scipy.special.erfcx(-wide * math.sqrt(0.5))
        np.testing.assert_allclose(polyax.vmap(polyax.grad(special.log_ndtr))(x), slopes, rtol=12 * eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quantiles_of_small_probabilities(dtype):
    with polyax.enable_x64(dtype == np.float64):
        tails = np.geomspace(1e-37, 0.5, 300).astype(dtype)
        p = np.concatenate([tails, 1 - np.geomspace(np.finfo(dtype).eps, 0.5, 100).astype(dtype)])
        want = scipy.special.ndtri(p.astype(float))
        np.testing.assert_allclose(special.ndtri(p), want, rtol=4 * np.finfo(dtype).eps)
        slopes = np.sqrt(2 * np.pi) * np.exp(scipy.special.ndtri(tails.astype(float)) ** 2 / 2)
        np.testing.assert_allclose(polyax.vmap(polyax.grad(special.ndtri))(tails), slopes, rtol=1e-4)
    edges = special.ndtri(np.array([0.0, 1.0, -1e-30, 1.5, np.nan], np.float32))
    assert edges[:2].tolist() == [-np.inf, np.inf] and np.isnan(edges[2:]).all()


def test_weak_types_and_integers_of_the_normal_distribution():
    for fun in (special.ndtr, special.ndtri, special.log_ndtr, special.erfcx):
        assert not fun(0.5).weak_type and fun(0.5).dtype == np.float32
    for fun in (special.ndtr, special.ndtri, special.log_ndtr):
        with pytest.raises(TypeError, match="x.dtype=int32 is not supported"):
            fun(1)


def test_poles():
    q = np.array([0, -1, -9, -20], np.float32)
    assert special.polygamma(1, q).tolist() == [np.inf] * 4
    slopes = polyax.vmap(polyax.grad(special.logit))(np.array([0, 1, np.inf, 0.25], np.float32))
    np.testing.assert_allclose(slopes, [np.inf, np.inf, 0, 16 / 3])


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_gamma_in_half_precision(dtype):
    x = jnp.array([0.5, -0.5, 4.0], dtype)
    assert special.gamma(x).dtype == dtype
    np.testing.assert_allclose(special.gamma(x).astype(np.float32), scipy.special.gamma([0.5, -0.5, 4]), rtol=1e-2)


@pytest.mark.parametrize("name, most", [("erfcx", 1), ("log_ndtr", 1)])
def test_scaled_tails_take_one_division(name, most):
    """Divisions, and steps of a polynomial in two precisions, are what such functions cost."""
    text = str(polyax.make_jaxpr(getattr(special, name))(np.float32(1)))
    assert text.count(" div ") <= most and text.count(" mul ") <= 21 and "f64" not in text


def test_half_precision_is_computed_in_single():
    x = jnp.array([0.5, 2.0], jnp.bfloat16)
    assert special.gammainc(x, x).dtype == special.erfcx(x).dtype == jnp.bfloat16
    np.testing.assert_allclose(special.erfcx(x).astype(np.float32), scipy.special.erfcx([0.5, 2.0]), rtol=1e-2)


BAD = {
    "bessel of integers": (lambda: special.bessel_jn(np.array([1]), v=2), ValueError, "must be float, got int32"),
    "bessel of a fractional order": (lambda: special.bessel_jn(1.0, v=2.5), TypeError, "integer"),
    "negative count": (lambda: special.bernoulli(-1), ValueError, "non-negative integer"),
    "series_order": (lambda: special.log_ndtr(1.0, series_order=31), ValueError, "<= 30"),
    "negative series_order": (lambda: special.log_ndtr(1.0, series_order=-1), ValueError, "non-negative"),
    "fractional series_order": (lambda: special.log_ndtr(1.0, series_order=1.5), TypeError, "Python integer"),
    "log_ndtr of integers": (lambda: special.log_ndtr(1), TypeError, "not supported"),
    "complex dawsn": (lambda: special.dawsn(1j), ValueError, "dawsn does not support complex-valued inputs"),
    "complex i0": (lambda: special.i0e(1j), TypeError, "does not accept dtype complex64"),
    "mixed dtypes": (lambda: lax.igamma(np.float32(1), jnp.float16(2)), TypeError, "same dtypes, got float32, float16"),
    "integers": (lambda: lax.betainc(1, 2, 3), TypeError, "does not accept dtype int32 at position 0"),
    "diff_n": (lambda: special.sph_harm_y(1, 0, 0.5, 0.3, diff_n=1), NotImplementedError, "diff_n"),
    "order of expn": (lambda: polyax.grad(special.expn)(2.0, 1.0), NotImplementedError, "by argument 0"),
    "slope of a slope": (lambda: polyax.grad(lax.igamma_grad_a)(2.0, 1.0), NotImplementedError, "igamma_grad_a"),
    "a traced degree": (
        lambda: polyax.jit(special.sph_harm_y)(1, 0, 0.5, 0.3),
        polyax.errors.ConcretizationTypeError,
        "n_max",
    ),
    "no such name": (lambda: lax.igamma_of_the_third_kind, AttributeError, "no attribute 'igamma_of_the_third_kind'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()


def test_beta_of_a_large_and_a_small_number():
    """Not the difference of two large logarithms."""
    a, b = np.float32([0.5, 1.0, 1e6, 3.0, 20.0]), np.float32([1e6, 1e6, 0.5, 1e3, 30.0])
    assert np.allclose(special.betaln(a, b), scipy.special.betaln(a.astype(float), b.astype(float)), rtol=1e-5)
    assert np.allclose(special.beta(0.5, 1e6), 0.00177245, rtol=1e-5)
    assert np.allclose(polyax.grad(special.betaln)(0.5, 1e6), -15.779, rtol=1e-3)


def test_signs_and_powers_of_gamma():
    assert np.array_equal(
        special.gammasgn(jnp.array([np.nan, -0.0, 0.0, -1.0, -0.5])), [np.nan, -1, 1, np.nan, -1], True
    )
    assert np.allclose(special.gamma(jnp.array([1 + 1j, 5 + 0j, -1.5 + 0j])), [0.498016 - 0.15495j, 24, 2.36327], 1e-4)
    assert not special.gamma(2.0).weak_type and not special.beta(2, 3).weak_type
    for call in (special.gammasgn, lambda x: special.beta(x, x)):
        with pytest.raises(ValueError, match="does not support complex-valued inputs"):
            call(1j)


def test_derivatives_beside_constants():
    """Python's numbers, which have no dtype."""
    exact = polyax.grad(special.betainc)(*[jnp.float32(x) for x in (0.5, 0.5, 0.2)])
    assert np.allclose(polyax.grad(special.betainc)(0.5, 0.5, 0.2), exact)
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        polyax.grad(special.bernoulli)(1.0)


def test_slopes_of_entropy():
    slopes = polyax.vmap(polyax.grad(special.entr))(jnp.array([0.0, 0.5, 1.0, np.inf]))
    assert np.allclose(slopes, [np.inf, np.log(2) - 1, -1, -np.inf])
    assert np.isnan(polyax.grad(special.entr)(-1.0)) and special.entr(-1.0) == -np.inf and special.entr(0) == 0


def test_slopes_of_entropies_where_they_are_infinite():
    """Those of the terms that are finite."""
    assert polyax.jvp(special.entr, (-1.0,), (1.0,))[1] == 0
    for p, q in [(-1.0, 2.0), (1.0, -2.0), (1.0, 0.0), (-1.0, -1.0)]:
        assert polyax.grad(special.rel_entr, (0, 1))(p, q) == (0, 0)
        assert polyax.grad(special.kl_div, (0, 1))(p, q) == (-1, 1)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "rel_entr", "kl_div"])
def test_entropies_at_their_edges(name: str) -> None:
    """Where nothing is defined they are infinite, and of NaN they are NaN, also times zero."""
    edges = np.array([0, 1e-20, 0.3, 1, 60, np.inf, -0.5, -30, np.nan], np.float32)
    finite = edges[edges != np.inf] if name == "kl_div" else edges  # it adds infinities of both signs, as in JAX
    x, y = (v.ravel() for v in np.meshgrid(finite, edges, indexing="ij"))
    with np.errstate(all="ignore"):
        for args in ((x, y), (x, np.float32(2)), (np.float32(0.3), y)):
            expected = getattr(scipy.special, name)(*args)
            np.testing.assert_allclose(getattr(special, name)(*args), expected, rtol=1e-5)


@pytest.mark.parametrize("x, q", [(1.5, 0.1), (3.0, 1.0), (10.0, 5.0)])
def test_zeta_has_a_derivative_by_its_exponent(x, q):
    step = 1e-6
    want = (scipy.special.zeta(x + step, q) - scipy.special.zeta(x - step, q)) / (2 * step)
    with polyax.enable_x64(True):
        np.testing.assert_allclose(polyax.grad(special.zeta)(x, q), want, rtol=1e-6)
        mixed = polyax.grad(polyax.grad(special.zeta, 1))(x, q)
        by_q = [-(x + s) * scipy.special.zeta(x + s + 1, q) for s in (step, -step)]
        np.testing.assert_allclose(mixed, (by_q[0] - by_q[1]) / (2 * step), rtol=1e-6)


def test_the_slope_of_betainc_is_that_of_the_power_at_the_ends() -> None:
    slope = polyax.grad(lambda x, a, b: special.betainc(a, b, x))
    assert [float(slope(*edge)) for edge in [(0.0, 1.0, 2.0), (1.0, 2.0, 1.0), (1.0, 2.0, 3.0)]] == pytest.approx(
        [2, 2, 0]
    )
    assert float(polyax.grad(lambda x: stats.beta.logsf(x, 2.0, 1.0))(1.0)) == 0


def test_the_derivative_of_poch_beside_a_python_number():
    found = polyax.grad(special.poch, 1)(2.0, 0.4)
    assert np.isclose(found, scipy.special.poch(2.0, 0.4) * scipy.special.digamma(2.4), rtol=1e-5)


def test_integrals_of_broken_order_need_a_large_number():
    found = special.expn(np.array([0.5, 1.5], np.float32), np.array([0.5, 2.5], np.float32))
    assert np.isnan(found[0]) and np.isclose(found[1], 0.0221, atol=1e-4)


def test_which_results_are_weakly_typed():
    ints = np.array([1, 2])
    assert not special.rel_entr(ints, 1.5).weak_type and not special.kl_div(ints, 1.5).weak_type
    assert special.rel_entr(1, 1.5).weak_type
    assert not special.softmax(2.5).weak_type and not special.sici(2.5)[0].weak_type


@pytest.mark.parametrize("call", [special.fresnel, lambda x: special.polygamma(1, x)])
def test_complex_numbers_are_refused(call):
    with pytest.raises((NotImplementedError, ValueError), match="complex-valued inputs"):
        call(np.array([1j]))


LEGENDRE = {  # by order, degree and point: JAX's
    "values": lambda z: special.lpmn_values(2, 2, z, False),
    "normalized": lambda z: special.lpmn_values(2, 2, z, True),
    "derivatives": lambda z: special.lpmn(2, 2, z)[1],
}
LEGENDRE_FOUND = {
    "values": [[1, 1, 1], [0.3, -0.7, 1], [-0.365, 0.235, 1]],
    "normalized": [[0.2821, 0.2821, 0.2821], [0.1466, -0.342, 0.4886], [-0.2302, 0.1482, 0.6308]],
    "derivatives": [[0, 0, 0], [0.3145, -0.9802, np.inf], [-2.5788, -0.084, np.inf]],
}


@pytest.mark.parametrize("name", LEGENDRE)
def test_associated_legendre_functions(name: str) -> None:
    z = np.float32([0.3, -0.7, 1])
    found = np.asarray(polyax.jit(LEGENDRE[name])(z))
    assert found.shape == (3, 3, 3) and not found[1:, 0].any() and not found[2, 1].any()
    order = 1 if name == "derivatives" else 0
    np.testing.assert_allclose(found[order], LEGENDRE_FOUND[name], atol=1e-4)


LEGENDRE_REFUSED = {
    "orders": (lambda z: special.lpmn(2, 3, z), NotImplementedError, "m!=n are not yet supported"),
    "number": (lambda z: special.lpmn(2, 2, 0.5), ValueError, "z must be a 1D array"),
    "list": (lambda z: special.lpmn(2, 2, [0.5]), TypeError, "lpmn requires ndarray or scalar arguments"),
    "rank": (lambda z: special.lpmn(2, 2, z[0]), ValueError, "z must be a 1D array"),
    "integers": (lambda z: special.lpmn_values(2, 2, z.astype(int), True), TypeError, "is not supported"),
    "traced": (
        lambda z: polyax.jit(special.lpmn)(2, 2, z),
        polyax.errors.ConcretizationTypeError,
        "Argument m of lpmn",
    ),
}


@pytest.mark.parametrize("name", LEGENDRE_REFUSED)
def test_legendre_functions_refuse(name: str) -> None:
    call, error, match = LEGENDRE_REFUSED[name]
    with pytest.raises(error, match=match):
        call(np.float32([0.3]))
