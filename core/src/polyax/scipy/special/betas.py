"""The beta function, and other quotients of gamma functions: rising factorials and binomial coefficients.

At poles of gamma they have the values that SciPy gives them: where poles cancel, by gamma(-n + e) gamma(n + 1 - e) =
(-1)^n pi / sin(pi e), else infinity or 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.lax import lenient as lax
from polyax.numpy.broadcast import choose
from polyax.numpy.promotion import as_array, promote_args_inexact
from polyax.scipy.special.define import real_arguments, special
from polyax.scipy.special.elementary import gammasgn

__all__ = ["beta", "betaln", "comb", "poch"]


def _pole(x: Any) -> Any:
    """Where gamma has one: at 0 and negative integers."""
    return (x <= 0) & (x == jnp.floor(x))


def _parity(n: Any) -> Any:
    """(-1)^n."""
    return jnp.where(n % 2 == 0, 1.0, -1.0).astype(n.dtype)


# --- the beta function -----------------------------------------------------------------------------------------------


def betaln(a: Any, b: Any) -> Any:
    """The logarithm of the absolute value of the beta function.

    >>> print(f"{betaln(2.0, 3.0):.4f}")
    -2.4849
    """
    a, b = map(as_array, promote_args_inexact("betaln", a, b))
    small, large = lax.min(a, b), lax.max(a, b)
    cancels = _cancels(small, large)
    value = _betaln(*_reflected(cancels, small, large))
    return choose((_pole(small) | _pole(large)) & ~cancels, np.inf, value)


def beta(a: Any, b: Any) -> Any:
    """The beta function gamma(a) gamma(b) / gamma(a + b).

    >>> print(f"{beta(2.0, 3.0):.4f}")
    0.0833
    """
    a, b = map(as_array, real_arguments("beta", a, b))
    small, large = lax.min(a, b), lax.max(a, b)
    sign = gammasgn(a) * gammasgn(b) * gammasgn(a + b)
    sign = choose(_cancels(small, large), _parity(large), choose(lax.ne(sign, sign), 1.0, sign))
    return sign * lax.exp(betaln(a, b))


def _cancels(small: Any, large: Any) -> Any:
    """Where the poles of gamma(small) and of gamma(small + large) cancel."""
    return _pole(small) & (large > 0) & (large == jnp.floor(large)) & (small + large <= 0)


def _reflected(cancels: Any, small: Any, large: Any) -> tuple[Any, Any]:
    """Of B(a, b) = (-1)^b B(1 - a - b, b) for integers b, in order."""
    other = choose(cancels, 1.0 - small - large, small)
    return lax.min(other, large), lax.max(other, large)


def _betaln(small: Any, large: Any) -> Any:
    far = lax.bitwise_and(lax.ge(large, 8), lax.gt(small, 0))
    near = lax.sub(lax.lgamma(large), lax.lgamma(lax.add(small, large)))
    safe_small, safe_large = choose(far, small, 1.0), choose(far, large, 8.0)
    return lax.add(lax.lgamma(small), lax.select_n(far, near, _lgamma_less(safe_small, safe_large)))


def _lgamma_less(a: Any, b: Any) -> Any:
    """lgamma(b) - lgamma(a + b) for a > 0 and b >= 8, by Stirling's formula, of which what is large cancels."""
    total = lax.add(a, b)
    tails = lax.sub(_stirling(b), _stirling(total))
    powers = lax.mul(lax.sub(total, 0.5), lax.log1p(lax.div(a, b)))
    return lax.add(lax.sub(a, lax.add(powers, lax.mul(a, lax.log(b)))), tails)


def _stirling(x: Any) -> Any:
    """lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2, for x >= 8."""
    inverse = lax.div(1.0, x)
    square, total = lax.square(inverse), lax.full_like(x, 0)
    for c in (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12):
        total = lax.add(lax.mul(total, square), c)
    return lax.mul(total, inverse)


# --- factorials ------------------------------------------------------------------------------------------------------


@special(
    lambda y, z, m: y * (lax.digamma(z + m) - lax.digamma(z)),
    lambda y, z, m: y * lax.digamma(z + m),
)
def poch(z: Any, m: Any) -> Any:
    """The rising factorial gamma(z + m) / gamma(z).

    >>> print(f"{poch(2.0, 3.0):.4f} {poch(-0.5, 1.0):.4f}")
    24.0000 -0.5000
    """
    total = z + m
    both = _pole(z) & _pole(total)
    above, below = choose(both, 1.0 - z, total), choose(both, 1.0 - total, z)
    sign = choose(both, _parity(m), gammasgn(z) * gammasgn(total))
    value = choose(lax.ne(sign, sign), 1.0, sign) * jnp.exp(_lgamma_difference(above, below, m))
    return choose(m == 0, 1.0, value)


def _lgamma_difference(above: Any, below: Any, m: Any) -> Any:
    """lgamma(above) - lgamma(below), which are ``m`` apart."""
    lower, far = lax.min(above, below), lax.min(above, below) >= 8
    step = choose(far & (m != 0), lax.abs(m), 1.0)
    exact = -lax.sign(m) * _lgamma_less(step, choose(far, lower, 8.0))
    return choose(far, exact, lax.lgamma(above) - lax.lgamma(below))


def comb(N: Any, k: Any, *, repetition: bool = False) -> Any:
    """The number of ways to take ``k`` things of ``N``, as floats; 0 where there is none.

    Args:
      repetition: whether a thing may be taken several times.

    >>> print(f"{comb(5, 2):.3f} {comb(5, 2, repetition=True):.3f}")
    10.000 15.000
    """
    n, k = (jnp.asarray(x) for x in promote_args_inexact("comb", N, k))
    if repetition:
        ways = comb(n + k - 1, k)
        return jnp.where((k == 0) & (n >= 0), 1.0, jnp.where(n > 0, ways, 0.0)).astype(ways.dtype)
    possible = (n >= 0) & (k >= 0) & (k <= n)
    n, m = jnp.where(possible, n, 1.0), jnp.where(possible, k, 0.0)
    return jnp.where(possible, jnp.exp(-betaln(n - m + 1.0, m + 1.0)) / (n + 1.0), 0.0)
