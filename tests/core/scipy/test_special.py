"""Special functions against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import polyax
from polyax.scipy import special

X = np.array([-2.5, -0.5, 0.25, 0.75, 1.5, 3.0])
UNIT = np.array([0.01, 0.2, 0.5, 0.9])
POSITIVE = np.array([0.1, 0.5, 1.0, 2.5, 7.0])

CALLS = {
    "erf": (X,), "erfc": (X,), "erfinv": (UNIT,), "expit": (X,), "gammaln": (POSITIVE,), "digamma": (POSITIVE,),
    "logit": (UNIT,), "xlogy": (np.array([0.0, 2.0]), np.array([0.0, 3.0])), "entr": (X,), "gamma": (X,),
    "xlog1py": (np.array([0.0, 2.0]), np.array([-1.0, 3.0])), "rel_entr": (POSITIVE, POSITIVE[::-1]),
    "kl_div": (POSITIVE, POSITIVE[::-1]), "betaln": (POSITIVE, 2.0), "beta": (POSITIVE, 1.5), "factorial": (POSITIVE,),
    "poch": (POSITIVE, 2.0), "ndtr": (X,), "ndtri": (UNIT,), "boxcox": (POSITIVE, 0.5), "boxcox1p": (POSITIVE, 0.0),
    "zeta": (POSITIVE + 1, 1.5), "multigammaln": (POSITIVE + 2, 3), "gammasgn": (X,), "softmax": (X,),
    "log_softmax": (X,), "logsumexp": (X,),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_agrees_with_scipy(name):
    got = getattr(special, name)(*CALLS[name])
    np.testing.assert_allclose(got, getattr(scipy.special, name)(*CALLS[name]), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["erf", "expit", "gammaln", "logit", "ndtr", "entr"])
def test_derivative_agrees_with_finite_differences(name):
    x, d = 0.4, 1e-5
    fun = getattr(scipy.special, name)
    with polyax.enable_x64(True):
        got = polyax.grad(getattr(special, name))(x)
    assert got == pytest.approx((fun(x + d) - fun(x - d)) / (2 * d), rel=1e-6)


def test_products_with_zero():
    assert special.xlogy(0.0, np.array([0.0, -1.0, np.inf, 2.0])).tolist() == [0.0] * 4
    assert polyax.grad(special.xlogy)(0.0, 2.0) == pytest.approx(np.log(2.0))
    assert polyax.grad(special.xlog1py)(0.0, 1.0) == pytest.approx(np.log(2.0))
