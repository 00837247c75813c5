"""Distributions and summaries against SciPy."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import scipy.stats

import polyax
from polyax import numpy as jnp
from polyax import random
from polyax.scipy import stats
from support.rows import Row, agree, check_derivatives, check_jit, check_values, check_vmap

X = np.array([-2.5, -0.7, 0.2, 1.3, 4.0])
UNIT = np.array([0.05, 0.3, 0.62, 0.97])
PLUS = np.array([0.1, 0.8, 2.5, 9.0])
A, B = np.array([0.5, 1.5, 3.0, 8.0]), np.array([2.0, 0.7, 1.0, 5.0])
K = np.array([0.0, 1.0, 3.0, 7.0])
P = np.array([0.2, 0.5, 0.9, 0.35])
LOWS, HIGHS = np.array([-3.0, -0.5, 0.2, 4.0]), np.array([-1.0, 2.0, 1.0, 6.0])
DENSITY = ("pdf", "logpdf")
BOTH = (*DENSITY, "cdf", "sf", "logcdf", "logsf")
LOC, SCALE = 0.3, 1.7
INVERSE = {"ppf", "isf"}

# name: functions, first argument, shapes, of which those with derivatives everywhere are known, location and scale
FAMILIES = {
    "norm": ((*BOTH, "ppf", "isf"), X, ()),
    "cauchy": ((*BOTH, "ppf", "isf"), X, ()),
    "laplace": ((*DENSITY, "cdf"), X, ()),
    "logistic": ((*DENSITY, "cdf", "sf", "ppf", "isf"), X, ()),
    "gumbel_r": ((*BOTH, "ppf"), X, ()),
    "gumbel_l": ((*BOTH, "ppf"), X, ()),
    "expon": ((*BOTH, "ppf"), PLUS, ()),
    "uniform": ((*DENSITY, "cdf", "ppf"), UNIT, ()),
    "t": (DENSITY, X[1:], (A,)),
    "pareto": ((*BOTH, "ppf"), 1 + PLUS, (A,)),
    "gamma": (BOTH, PLUS, (A,)),
    "chi2": (BOTH, PLUS, (A,)),
    "beta": (BOTH, UNIT, (A, B)),
    "truncnorm": (
        BOTH,
        np.array([-2.0, 0.0, 0.5, 4.5]),
        (LOWS, HIGHS),
    ),
}
PLAIN = {
    "vonmises": (DENSITY, np.array([-2.0, 0.3, 1.5, 3.0]), (A,)),
    "wrapcauchy": (DENSITY, np.array([0.2, 1.3, 3.0, 6.0]), (P,)),
    "gennorm": ((*DENSITY, "cdf"), np.array([-2.0, -0.4, 0.6, 1.5]), (A,)),
}
COUNTS = {
    "bernoulli": (np.array([0.0, 1.0, 1.0, 0.0]), (P,)),
    "binom": (K, (np.array([4.0, 3.0, 9.0, 20.0]), P)),
    "nbinom": (K, (A, P)),
    "betabinom": (K, (np.array([4.0, 3.0, 9.0, 20.0]), A, B)),
    "geom": (K + 1, (P,)),
    "poisson": (K, (PLUS,)),
}


def row(family, kind, args, wrt, **how):
    mine = getattr(importlib.import_module(f"polyax.scipy.stats.{family}"), kind)
    theirs = getattr(getattr(scipy.stats, family), kind)
    return Row(mine, theirs, args, wrt, **{"rtol": 1e-10, "coarse": 2e-4, "slope": 1e-5, **how})


def rows():
    for family, (kinds, x, shapes) in FAMILIES.items():
        for kind in kinds:
            first = UNIT if kind in INVERSE else x * SCALE + LOC
            shapes_here = tuple(s[: len(first)] for s in shapes)
            args = (first, *shapes_here, LOC, SCALE)
            yield f"{family}.{kind}", row(family, kind, args, tuple(range(len(args))))
    for family, (kinds, x, shapes) in PLAIN.items():
        for kind in kinds:
            yield f"{family}.{kind}", row(family, kind, (x, *shapes), tuple(range(1 + len(shapes))))
    for family, (k, shapes) in COUNTS.items():
        for kind in ("pmf", "logpmf"):
            wrt = tuple(i for i in range(1, 1 + len(shapes)) if i > 1 or family not in ("binom", "betabinom"))
            yield f"{family}.{kind}", row(family, kind, (k, *shapes, 0.0), wrt)


MATRIX = np.array([[2.0, 0.3], [0.3, 1.0]])
POINTS = np.array([[0.25, 0.5, 0.875], [0.75, 0.5, 0.125]])
SAMPLES = np.random.default_rng(3).normal(size=(2, 9))
WEIGHTS = np.linspace(0.2, 1.0, 9)
ROWS = {
    **dict(rows()),
    "bernoulli.cdf": row("bernoulli", "cdf", (np.array([-1.0, 0.0, 0.5, 1.0]), P), (1,)),
    "bernoulli.ppf": row("bernoulli", "ppf", (np.array([0.1, 0.3, 0.7, 0.99]), P), ()),
    "poisson.cdf": row("poisson", "cdf", (np.array([-1.0, 0.0, 2.5, 7.0]), PLUS), (1,)),
    "poisson.entropy": row("poisson", "entropy", (np.array([0.0, 0.5, 5.0, 30.0, 33.0, 400.0]),), (), rtol=1e-8),
    "multinomial": row("multinomial", "logpmf", (np.array([[1, 2, 3], [6, 0, 0]]), 6, np.array([0.25, 0.25, 0.5])), ()),
    "multinomial.pmf": row("multinomial", "pmf", (np.array([1, 2, 3]), 7, np.array([0.25, 0.25, 0.5])), ()),
    "dirichlet": row("dirichlet", "logpdf", (POINTS, A[:2]), (1,)),
    "dirichlet.pdf": row("dirichlet", "pdf", (POINTS[:1], A[:2]), ()),
    "multivariate_normal": row("multivariate_normal", "logpdf", (POINTS.T, A[:2], MATRIX), (0, 1)),
    "multivariate_normal.pdf": row("multivariate_normal", "pdf", (A[:2], B[:2], MATRIX), (0, 1)),
    "sem": Row(stats.sem, scipy.stats.sem, (SAMPLES,), (0,)),
    "sem of all": Row(lambda x: stats.sem(x, axis=None, ddof=0), lambda x: scipy.stats.sem(x, None, 0), (SAMPLES,)),
    **{
        f"kde {method}": Row(
            lambda data, w, at, method=method: stats.gaussian_kde(data, method, w)(at),
            lambda data, w, at, method=method: scipy.stats.gaussian_kde(data, method, w)(at),
            (SAMPLES, WEIGHTS, POINTS),
            (0, 1, 2),
            rtol=1e-10,
        )
        for method in (None, "silverman", 0.5)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_agrees_with_scipy(name):
    check_values(ROWS[name])


@pytest.mark.parametrize("name", [n for n, r in ROWS.items() if r.wrt])
def test_derivatives_agree_with_finite_differences(name):
    check_derivatives(ROWS[name])


@pytest.mark.parametrize("name", [n for n in ROWS if not n.endswith((".pdf", ".pmf", "sf"))])
def test_compiled_and_mapped(name):
    check_jit(ROWS[name])
    if name != "dirichlet":  # moved points aren't probabilities
        check_vmap(ROWS[name])


@pytest.mark.parametrize("name", ["beta.logpdf", "gamma.cdf", "norm.logcdf", "poisson.pmf", "truncnorm.logsf"])
def test_runs_compiled_on_the_cpu(name):
    with polyax.default_device("cpu"):
        check_values(ROWS[name])


OUTSIDE = {
    "beta.logpdf": (-0.5, 2.0, 3.0), "gamma.logpdf": (-1.0, 2.0), "expon.pdf": (-1.0,), "uniform.logpdf": (1.5,),
    "pareto.logpdf": (0.5, 2.0), "binom.logpmf": (5, 3, 0.5), "geom.pmf": (0, 0.5), "poisson.logpmf": (-1, 2.0),
    "bernoulli.logpmf": (2, 0.5), "truncnorm.logpdf": (3.0, -1.0, 1.0), "gamma.cdf": (-1.0, 2.0),
    "expon.cdf": (-1.0,), "beta.sf": (1.5, 2.0, 3.0), "truncnorm.sf": (3.0, -1.0, 1.0), "wrapcauchy.pdf": (-1.0, 0.5),
    "chi2.pdf": (-2.0, 3.0), "nbinom.pmf": (-1, 3.0, 0.5), "poisson.cdf": (-1, 2.0), "norm.ppf": (1.5,),
    "expon.ppf": (-0.5,), "bernoulli.ppf": (1.2, 0.5), "vonmises.pdf": (1.0, -1.0), "poisson.pmf": (1.5, 2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_outside_of_the_support(name):
    """Values as SciPy has them, and derivatives that aren't NaN."""
    family, kind = name.split(".")
    fun, args = getattr(getattr(stats, family), kind), OUTSIDE[name]
    want = getattr(getattr(scipy.stats, family), kind)(*args)
    agree(fun(*args), np.asarray(want), 1e-6)
    if not np.isnan(want) and kind != "ppf":
        slope = polyax.grad(fun)(*map(float, args))
        assert slope == 0


BOUNDED = {"beta": (2.0, 3.0), "gamma": (2.5,), "chi2": (3.0,), "expon": (), "pareto": (2.0,), "uniform": ()}
KINDS = [(d, kind) for d in BOUNDED for kind in ("cdf", "logcdf", "sf", "logsf") if hasattr(getattr(stats, d), kind)]


@pytest.mark.parametrize("name, kind", KINDS)
def test_probabilities_are_flat_outside_of_the_support(name, kind):
    fun = lambda x, *shapes: getattr(getattr(stats, name), kind)(x, *shapes)
    x = np.array([-2.0, np.inf] if name not in ("beta", "uniform") else [-2.0, 1.5, np.inf], np.float32)
    agree(fun(x, *BOUNDED[name]), getattr(getattr(scipy.stats, name), kind)(x, *BOUNDED[name]), 1e-6)
    for i in range(1 + len(BOUNDED[name])):
        slope = polyax.grad(lambda *args: fun(*args).sum(), i)(x, *BOUNDED[name])
        np.testing.assert_array_equal(slope, np.zeros_like(slope))


def test_slopes_at_the_ends_of_the_support_are_those_inside():
    assert polyax.grad(stats.expon.cdf)(0.0) == 1 and polyax.grad(stats.expon.logsf)(0.0) == -1
    assert polyax.grad(stats.pareto.cdf)(1.0, 2.0) == 2 and polyax.grad(stats.uniform.cdf)(0.0) == 1


def test_numbers_between_counts():
    """Recorded from JAX, which refuses them in few distributions."""
    got = [
        stats.betabinom.logpmf(1.5, 4, 1.0, 2.0), stats.binom.logpmf(1.5, 4, 0.3), stats.geom.logpmf(1.5, 0.3),
        stats.poisson.logpmf(1.5, 2.0), stats.bernoulli.logpmf(0.5, 0.3), stats.geom.logpmf(0.5, 0.3),
    ]  # fmt: skip
    want = [-1.3217566, -1.0052485466003418, -1.3823103, -np.inf, -0.78032386, -1.0256353]
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert polyax.grad(stats.bernoulli.logpmf)(0.5, 0.3) == pytest.approx(-0.84729785)


def test_plain_numbers():
    """Python's own, which are no arrays."""
    calls = {"bernoulli.cdf": (0, 0.25), "bernoulli.ppf": (0.9, 0.25), "poisson.cdf": (1, 2.0), "beta.cdf": (0.5, 1, 2)}
    for name, args in calls.items():
        family, kind = name.split(".")
        got, want = (getattr(getattr(house, family), kind)(*args) for house in (stats, scipy.stats))
        agree(got, np.asarray(want), 1e-6)


def test_arguments_by_name():
    assert stats.norm.pdf(1.0, scale=2.0) == stats.norm.pdf(x=1.0, loc=0, scale=2.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'shape'"):
        stats.norm.pdf(1.0, shape=2.0)
    with pytest.raises(TypeError, match="missing a required argument: 'a'"):
        stats.gamma.pdf(1.0)


TIES = np.array([[3.0, 1.0, 2.0, 3.0, 1.0], [0.0, 0.0, 5.0, 5.0, 5.0]])


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
def test_ranks(method, axis):
    want = scipy.stats.rankdata(TIES.ravel() if axis is None else TIES, method, axis=axis)
    agree(stats.rankdata(TIES, method, axis=axis), want.astype(np.float64), 1e-6)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_mode(axis, keepdims):
    got, want = (f(TIES, axis=axis, keepdims=keepdims) for f in (stats.mode, scipy.stats.mode))
    agree((got.mode, got.count), (want.mode, want.count), 1e-6)
    assert np.isnan(stats.mode(np.zeros((0,))).mode)
    assert stats.mode(np.zeros((0, 3))).mode.shape == (3,)


def test_one_variance_for_all_axes():
    found = stats.multivariate_normal.logpdf(POINTS[:, :3].T, A[:2], 2.0)
    agree(found, scipy.stats.multivariate_normal.logpdf(POINTS[:, :3].T, A[:2], 2.0), 1e-5)


def test_nan_in_summaries():
    x = np.array([1.0, np.nan, 3.0, 4.0])
    assert np.isnan(stats.sem(x)) and np.isnan(stats.rankdata(x)).all()
    agree(stats.sem(x, nan_policy="omit"), scipy.stats.sem(x, nan_policy="omit"), 1e-6)


@pytest.mark.parametrize("policy", ["propagate", "omit"])
def test_errors_of_complex_means_are_complex(policy: str) -> None:
    found = stats.sem(np.array([1 + 1j, 2, 3 - 1j]), nan_policy=policy)
    assert found.dtype == np.complex64 and abs(found - np.sqrt(2 / 3)) < 1e-6


def test_integrals_of_estimated_densities():
    mine, theirs = (house.gaussian_kde(SAMPLES, weights=WEIGHTS) for house in (stats, scipy.stats))
    other = (house.gaussian_kde(SAMPLES + 1, 0.3) for house in (stats, scipy.stats))
    one, two = other
    agree(mine.integrate_kde(one), theirs.integrate_kde(two), 1e-4)
    agree(mine.integrate_gaussian(A[:2], MATRIX), theirs.integrate_gaussian(A[:2], MATRIX), 1e-4)
    agree(mine.logpdf(POINTS), theirs.logpdf(POINTS), 1e-4)
    agree((mine.neff, mine.covariance), (theirs.neff, theirs.covariance), 1e-4)
    line, known = (house.gaussian_kde(SAMPLES[0]) for house in (stats, scipy.stats))
    agree(line.integrate_box_1d(-1.0, 0.5), known.integrate_box_1d(-1.0, 0.5), 1e-4)
    assert (mine.d, mine.n) == (2, 9)
    points = np.asarray(mine.resample(random.PRNGKey(0), (4000,)))
    np.testing.assert_allclose(points.mean(1), SAMPLES @ WEIGHTS / WEIGHTS.sum(), atol=0.06)
    agree(polyax.jit(lambda k: k(POINTS))(mine), theirs(POINTS), 1e-4)


BAD = {
    "policy": (lambda: stats.mode(X, nan_policy="x"), ValueError, "Illegal nan_policy value 'x'"),
    "policy omit": (lambda: stats.rankdata(X, nan_policy="omit"), NotImplementedError, "omit is not implemented"),
    "policy of sem": (lambda: stats.sem(X, nan_policy="raise"), ValueError, "raise is not supported"),
    "method": (lambda: stats.rankdata(X, "x"), ValueError, "unknown method 'x'"),
    "one sample": (lambda: stats.gaussian_kde(np.ones(1)), ValueError, "multiple elements"),
    "weights": (lambda: stats.gaussian_kde(X, weights=np.ones(2)), ValueError, "of length n"),
    "bandwidth": (lambda: stats.gaussian_kde(X, "x"), ValueError, "`bw_method` should be"),
    "complex samples": (lambda: stats.gaussian_kde(X * 1j), NotImplementedError, "complex"),
    "points": (lambda: stats.gaussian_kde(X)(np.ones((2, 3))), ValueError, "points have dimension 2"),
    "box": (lambda: stats.gaussian_kde(X).integrate_box(0, 1), NotImplementedError, "integrate_box_1d"),
    "box in the plane": (lambda: stats.gaussian_kde(SAMPLES).integrate_box_1d(0, 1), ValueError, "1D"),
    "set_bandwidth": (lambda: stats.gaussian_kde(X).set_bandwidth(1.0), NotImplementedError, "bandwidth"),
    "densities": (lambda: stats.gaussian_kde(X).integrate_kde(stats.gaussian_kde(SAMPLES)), ValueError, "dimension"),
    "mean": (lambda: stats.gaussian_kde(X).integrate_gaussian(A, MATRIX), ValueError, "mean does not have dim"),
    "gaussian": (
        lambda: stats.gaussian_kde(X).integrate_gaussian(A[:1], MATRIX), ValueError, "covariance does not have dim"
    ),
    "weights of a matrix": (lambda: stats.gaussian_kde(X, weights=MATRIX), ValueError, "should be one-dimensional"),
    "policy of mode": (lambda: stats.mode(X, nan_policy="raise"), NotImplementedError, "In order to best JIT compile"),
    "singular": (
        lambda: stats.multivariate_normal.logpdf(X, X, np.eye(5), True), NotImplementedError, "allow_singular"
    ),
    "covariance": (lambda: stats.multivariate_normal.logpdf(X, X, MATRIX), ValueError, "incompatible shapes"),
    "dirichlet": (lambda: stats.dirichlet.logpdf(np.ones((5, 2)), A[:2]), ValueError, "same number of entries"),
    "alpha": (lambda: stats.dirichlet.logpdf(POINTS, MATRIX), ValueError, "one-dimensional"),
    "no such distribution": (lambda: stats.abnormal, AttributeError, "no attribute 'abnormal'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, error, text = BAD[name]
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("name", ["bernoulli", "geom"])
def test_no_number_is_no_count(name):
    family, shapes = getattr(stats, name), (0.3,)
    for f in (family.pmf, family.logpmf):
        found = f(jnp.array([np.nan, 1.0]), *shapes)
        assert np.isnan(found[0]) and np.isfinite(found[1])


def test_quantiles_of_coins_are_of_their_type():
    assert not stats.bernoulli.ppf(jnp.float32(0.9), 0.3).weak_type


@pytest.mark.parametrize("name", ["logpdf", "pdf", "cdf", "logcdf", "sf", "logsf"])
def test_no_beta_distribution_has_shapes_that_are_not_positive(name):
    assert np.isnan(getattr(stats.beta, name)(np.array([-1.0, 0.5, 2.0]), -1.0, 2.0)).all()


def test_counts_of_a_multinomial_distribution_are_integers():
    with pytest.raises(ValueError, match="x and n must be of integer type"):
        stats.multinomial.pmf(np.array([1.0, 2.0]), 3, np.array([0.2, 0.8]))


def test_a_number_is_its_own_mode():
    assert [int(x) for x in stats.mode(3)] == [3, 1] and stats.mode(3, keepdims=True).mode.shape == (1,)


def test_binomial_counts_between_whole_numbers() -> None:
    """Up to one above the number of trials, as in JAX."""
    np.testing.assert_allclose(stats.binom.pmf(np.float32(5.5), 5, 0.4), 0.00196626, rtol=1e-4)
    assert stats.binom.pmf(6, 5, 0.4) == 0


def test_poisson_counts_are_whole_before_they_are_shifted() -> None:
    """As in JAX, for which also what is no number is just no count."""
    k = np.float32([np.nan, 2.5, 2, 3])
    np.testing.assert_allclose(stats.poisson.pmf(k, 2.0), [0, 0, 0.27067, 0.180447], rtol=1e-4)
    np.testing.assert_allclose(stats.poisson.pmf(k, 2.0, 0.5), [0, 0, 0.2879518, 0.2303614], rtol=1e-4)
    assert np.isfinite(polyax.grad(stats.poisson.logpmf, 1)(-1.0, 2.0))


def test_beta_binomial_counts_by_jaxs_bounds() -> None:
    """Recorded from JAX: a location that is no whole number moves what is below the count."""
    k = np.float32([-1, 0, 1, 2, 5.5, np.nan])
    np.testing.assert_allclose(
        stats.betabinom.pmf(k, 5, 2.0, 3.0), [0, 1 / 6, 5 / 21, 5 / 21, 1 / 21, np.nan], rtol=1e-4
    )
    np.testing.assert_allclose(
        stats.betabinom.pmf(k, 5, 2.0, 3.0, 0.5), [0, 0.0967264, 0.2127974, 0.2455357, 0.0818452, np.nan], rtol=1e-4
    )
    assert np.isnan(stats.betabinom.pmf(1, 5, -1.0, 2.0)) and stats.betabinom.pmf(0, 0, 1.0, 1.0) == 1


def test_binomial_counts_that_chance_does_not_decide() -> None:
    assert stats.binom.pmf(np.float32([0, 1, np.nan]), 0, 0.5).tolist() == [1, 0, 0]
    assert stats.binom.pmf(5, 5, 1.0) == stats.binom.pmf(0, 5, 0.0) == 1


@pytest.mark.parametrize("name", ["gumbel_r", "gumbel_l"])
def test_gumbel_distributions_have_positive_scales_and_no_ends(name: str) -> None:
    family = getattr(stats, name)
    assert np.isnan(family.ppf(np.float32([0, 1, np.nan, -1]))).all()
    for kind in ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"):
        assert np.isnan(getattr(family, kind)(np.float32([-1, 0, 1]), 0.0, np.float32([[-2], [0]]))).all()


def test_wrapped_distributions_are_proper_everywhere() -> None:
    assert np.isnan(stats.wrapcauchy.pdf(np.float32([-1, 1, 100]), 1.0)).all()


def test_bounded_distributions_refuse_complex_numbers() -> None:
    for family in (stats.expon, stats.uniform, stats.gumbel_r):
        with pytest.raises(TypeError, match="t does not accept dtype complex64"):
            family.pdf(jnp.array([1j]))


def test_values_of_arrays_are_strongly_typed_but_for_some() -> None:
    """Recorded from JAX."""
    k = jnp.arange(3)
    assert not stats.norm.pdf(k, 0.3).weak_type and not stats.t.logpdf(k, 3.0).weak_type
    assert stats.poisson.pmf(k, 3.0).weak_type and stats.vonmises.pdf(k, 3.0).weak_type
    assert stats.norm.pdf(1, 0.3).weak_type
