"""Exponential, sine and cosine integrals, the dilogarithm and Owen's T."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.lax import lenient as lax
from polyax.lax.special.bessel import chebyshev
from polyax.lax.special.converging import limit
from polyax.scipy.special.define import real_arguments, real_floats, special

__all__ = ["exp1", "expi", "expn", "owens_t", "sici", "spence"]

EULER = 0.57721566490153286061

# --- exponential integrals -------------------------------------------------------------------------------------------


def _tiny(x: Any) -> float:
    return float(jnp.finfo(x.dtype).tiny) ** 0.5


def _expn_start(n: Any, x: Any) -> Any:
    """The fraction, and the quotients of its numerators and of its denominators (Lentz)."""
    first = 1.0 / (x + n)
    return first, jnp.full_like(x, 1.0 / _tiny(x)), first


def _expn_step(k: Any, state: Any, n: Any, x: Any) -> Any:
    total, above, below = state
    numerator, denominator = -k * (n + k - 1.0), x + n + 2.0 * k
    below = 1.0 / (denominator + numerator * below)
    above = denominator + numerator / above
    return total * above * below, above, below


def _powers_start(n: Any, x: Any) -> Any:
    """The sum of the series and its power of -x over a factorial; the term with a logarithm comes apart."""
    return jnp.where(n == 1, 0.0, 1.0 / jnp.where(n == 1, 1.0, n - 1.0)), jnp.ones_like(x)


def _powers_step(k: Any, state: Any, n: Any, x: Any) -> Any:
    total, power = state
    power = -power * x / k
    gap = n - 1.0 - k
    return total + jnp.where(gap == 0, 0.0, power / jnp.where(gap == 0, 1.0, gap)), power


def _logarithmic(n: Any, x: Any) -> Any:
    """(-x)**(n-1) / (n-1)! (digamma(n) - log(x))."""
    size = jnp.exp((n - 1.0) * jnp.log(x) - lax.lgamma(n))
    return jnp.where((n - 1.0) % 2 == 0, size, -size) * (lax.digamma(n) - jnp.log(x))


def _expn(n: Any, x: Any) -> Any:
    """The series of DLMF 8.19.8 for small x, else the continued fraction of 8.19.17."""
    near, regular = x <= 1.0, (x > 0) & (n > 0)
    far_x = jnp.where(regular & ~near, x, 2.0)
    near_x = jnp.where(regular & near, x, 0.5)
    fraction = jnp.exp(-far_x) * limit(_expn_start, _expn_step, (n, far_x))
    series = limit(_powers_start, _powers_step, (n, near_x)) + _logarithmic(jnp.maximum(n, 1.0), near_x)
    series = jnp.where(n == jnp.floor(n), series, jnp.nan)
    at_zero = jnp.where(n > 1, 1.0 / jnp.where(n > 1, n - 1.0, 1.0), jnp.inf)
    value = jnp.where(near, series, fraction)
    value = jnp.where(n == 0, jnp.exp(-x) / jnp.where(x == 0, 1.0, x), value)
    value = jnp.where(x == 0, at_zero, jnp.where(x == jnp.inf, 0.0, value))
    return jnp.where((x < 0) | (n < 0) | jnp.isnan(x) | jnp.isnan(n), jnp.nan, value)


@special(None, lambda y, n, x: jnp.where(n == 0, -jnp.exp(-x) * (1.0 + 1.0 / x) / x, -_expn(jnp.abs(n - 1.0), x)))
def expn(n: Any, x: Any) -> Any:
    """The generalised exponential integral E_n, that of ``exp(-x t) / t**n`` from 1 to infinity.

    Args:
      n: orders that are not negative, and integral where ``x`` is no greater than 1, else NaN; without derivative.
      x: NaN below 0.

    >>> print(f"{expn(2, 1.0):.5f}")
    0.14850
    """
    return _expn(n, x)


@special(lambda y, x: -jnp.exp(-x) / x)
def exp1(x: Any) -> Any:
    """The exponential integral E_1, that of ``exp(-t) / t`` from ``x`` to infinity.

    >>> print(f"{exp1(1.0):.5f}")
    0.21938
    """
    return _expn(jnp.ones_like(x), x)


def _ei_start(x: Any) -> Any:
    return jnp.zeros_like(x), jnp.ones_like(x)


def _ei_step(k: Any, state: Any, x: Any) -> Any:
    total, power = state
    power = power * x / k
    return total + power / k, power


def _asymptotic(x: Any) -> Any:
    """x exp(-x) Ei(x) = 1 + 1!/x + 2!/x**2 + ..., for large x."""
    total = jnp.ones_like(x)
    for k in reversed(range(1, 40)):
        total = 1.0 + total * k / x
    return total


@special(lambda y, x: jnp.exp(x) / x)
def expi(x: Any) -> Any:
    """The exponential integral Ei, the principal value of that of ``exp(t) / t`` up to ``x``.

    >>> print(f"{expi(1.0):.5f}")
    1.89512
    """
    far, negative = x > 40.0, x < 0
    near = jnp.where(far | negative | jnp.isnan(x), 1.0, x)
    series = EULER + jnp.log(near) + limit(_ei_start, _ei_step, (near,))
    large = jnp.where(far, x, 40.0)
    beyond = jnp.where(x == jnp.inf, jnp.inf, jnp.exp(large) / large * _asymptotic(large))
    below = -_expn(jnp.ones_like(x), jnp.where(negative, -x, 1.0))
    return jnp.where(jnp.isnan(x), x, jnp.where(negative, below, jnp.where(far, beyond, series)))


# --- sine and cosine integrals ---------------------------------------------------------------------------------------


def _sici_series(x: Any) -> tuple[Any, Any]:
    """DLMF 6.6.5 and 6.6.6, up to 4: Si, and Ci without its logarithm."""
    sine = cosine = jnp.zeros_like(x)
    for k in reversed(range(16)):
        sign = (-1) ** k
        sine = sine * x * x + sign / (math.factorial(2 * k + 1) * (2 * k + 1))
        cosine = cosine * x * x - sign / (math.factorial(2 * k + 2) * (2 * k + 2))
    return x * sine, x * x * cosine


# fmt: off
_F = (
    0.9547633884032938, -0.0410699867196166, 0.003510547451979443, -0.0005172175488768527, 0.00010328193778536401,
    -2.5139407613382352e-05, 7.046299766746879e-06, -2.1974483848031207e-06, 7.455004638205959e-07,
    -2.708631114149491e-07, 1.0420323162393677e-07, -4.208421591372028e-08, 1.7724757498225048e-08,
    -7.74422777800052e-09, 3.4951406359013262e-09, -1.623758282438595e-09, 7.742528363926332e-10,
    -3.779909189916398e-10, 1.8854142277512294e-10, -9.591256705971083e-11, 4.968295980337363e-11,
    -2.617024750846177e-11, 1.4000802549480624e-11, -7.599391900206504e-12, 4.180924280099476e-12,
    -2.3295031985933567e-12, 1.3134666656038736e-12, -7.489259710368142e-13, 4.315689215261013e-13,
    -2.511913563013866e-13, 1.4759641639642029e-13, -8.750963270179986e-14, 5.2330394699278146e-14,
    -3.154964168787851e-14, 1.9169672434585316e-14, -1.1734494176292516e-14, 7.234422458652955e-15,
    -4.490589020157558e-15, 2.805702850071182e-15, -1.764029860467609e-15, 1.1158102615309448e-15,
    -7.098978145308165e-16, 4.54181437176874e-16, -2.921484046286523e-16, 1.889017137678018e-16,
    -1.2275772484351713e-16, 8.016206541616905e-17, -5.259283026588499e-17, 3.466215904460519e-17,
    -2.2945248266323967e-17, 1.5253747662504972e-17, -1.0182299874198629e-17,
)
_G = (
    0.8841994524524334, -0.10005788518210433, 0.012620432620807134, -0.0023462168947058176, 0.000551332382934603,
    -0.00015195038861323185, 4.7073797699758375e-05, -1.5961270265510487e-05, 5.8179485492273865e-06,
    -2.2508864416686086e-06, 9.156512743606252e-07, -3.888480555539212e-07, 1.714194880024692e-07,
    -7.809375500314394e-08, 3.6631597833534293e-08, -1.76384904168849e-08, 8.696178410539917e-09,
    -4.380464863692862e-09, 2.250267503885226e-09, -1.1770001575850181e-09, 6.259545254121273e-10,
    -3.380666786792522e-10, 1.852194545569281e-10, -1.0284402466039528e-10, 5.7823953484619176e-11,
    -3.2895679509159547e-11, 1.8922183673275945e-11, -1.0998473138740676e-11, 6.456164584298415e-12,
    -3.825356633443283e-12, 2.2867448208599246e-12, -1.3785489843914305e-12, 8.377430096055274e-13,
    -5.130059359175372e-13, 3.16452003759352e-13, -1.9657529566620967e-13, 1.2292979574974507e-13,
    -7.737004453364485e-14, 4.899641723652806e-14, -3.1212401622094874e-14, 1.9996944867816016e-14,
    -1.2881960847783239e-14, 8.342495067198942e-15, -5.430308036011298e-15, 3.5521476706160818e-15,
    -2.334658548060316e-15, 1.5415343448038675e-15, -1.0223878033733347e-15, 6.810028377716489e-16,
    -4.555054591641109e-16, 3.059085901846925e-16, -2.0624568413276338e-16, 1.3957615094508539e-16,
    -9.479787635663447e-17, 6.460287180947055e-17, -4.41597379217217e-17, 3.026051646433825e-17,
    -2.076565541406433e-17, 1.4241196876795748e-17,
)
"""Chebyshev series in (4 / x)**2 of x f(x) and x**2 g(x), the auxiliary functions of DLMF 6.2.17 and 6.2.18."""
# fmt: on


def _reciprocal(x: Any) -> Any:
    return jnp.sin(x) / jnp.where(x == 0, 1.0, x)


@special(lambda _, x: (jnp.where(x == 0, 1.0, _reciprocal(x)), jnp.cos(x) / x))
def _sici(x: Any) -> tuple[Any, Any]:
    size = jnp.abs(x)
    near = jnp.minimum(size, 4.0)
    sine, cosine = _sici_series(near)
    far = jnp.where(jnp.isinf(x), 4.0, jnp.maximum(size, 4.0))
    t = 32.0 / (far * far) - 1.0
    f, g = chebyshev(_F, t) / far, chebyshev(_G, t) / (far * far)
    c, s = jnp.cos(far), jnp.sin(far)
    si = jnp.where(size < 4.0, sine, 0.5 * math.pi - f * c - g * s)
    ci = jnp.where(size < 4.0, EULER + jnp.log(near) + cosine, f * s - g * c)
    infinite = jnp.isinf(x)
    si, ci = jnp.where(infinite, 0.5 * math.pi, si), jnp.where(infinite, 0.0, ci)
    return jnp.sign(x) * si, jnp.where(x == -jnp.inf, jnp.nan, ci)


def sici(x: Any) -> tuple[Any, Any]:
    """The sine integral, that of ``sin(t) / t`` from 0 to ``x``, and the cosine integral, of ``abs(x)``.

    >>> si, ci = sici(1.0)
    >>> print(f"{si:.5f} {ci:.5f}")
    0.94608 0.33740
    """
    return _sici(real_floats(real_arguments("sici", x)[0]))


# --- dilogarithm and Owen's T ----------------------------------------------------------------------------------------

_DEBYE = (1 / 36, -1 / 3600, 1 / 211680, -1 / 10886400, 1 / 526901760, -691 / 16999766784000)
"""B[2k] / (2k + 1)! for k = 1, 2, ..."""


def _dilogarithm(u: Any) -> Any:
    """Li2(1 - exp(-u)) for small u."""
    series = jnp.zeros_like(u)
    for c in reversed(_DEBYE):
        series = (series + c) * u * u
    return u * (1.0 + series) - 0.25 * u * u


@special(lambda y, x: jnp.where(x == 1, -1.0, jnp.log(x) / jnp.where(x == 1, 1.0, 1.0 - x)))
def spence(x: Any) -> Any:
    """Spence's function: the integral of ``log(t) / (1 - t)`` from 1 to ``x``, which is Li2(1 - x).

    NaN below 0 and, as in JAX, at infinity.

    >>> print(f"{spence(0.0):.5f}")
    1.64493
    """
    large, small = x > 2.0, x < 0.5
    log = jnp.log(jnp.where((x == 0) | (x == jnp.inf), 1.0, x))
    y = jnp.where(large, 1.0 / jnp.where(large, x, 1.0), x)  # Li2(1 - x) = -Li2(1 - 1/x) - log(x)**2 / 2
    y = jnp.where(y < 0.5, 1.0 - y, y)  # Li2(1 - y) = pi**2 / 6 - log(y) log(1 - y) - Li2(y)
    part = _dilogarithm(-jnp.log(y))
    folded = large | small
    reflected = math.pi**2 / 6 - jnp.where(large, -log * jnp.log1p(-1 / jnp.where(large, x, 2.0)), log * jnp.log(y))
    part = jnp.where(folded, reflected - part, part)
    value = jnp.where(large, -part - 0.5 * log * log, part)
    return jnp.where((x < 0) | (x == jnp.inf), jnp.nan, value)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def _narrow(h: Any, a: Any) -> Any:
    """Owen's integral for h >= 0 and 0 <= a <= 1, by Gauss's quadrature as far as the integrand matters."""
    end = jnp.where(a * h > 8.5, 8.5 / jnp.where(h == 0, 1.0, h), a)
    total = jnp.zeros_like(h)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        x = end * (0.5 * (1.0 + float(node)))
        total = total + float(weight) * jnp.exp(-0.5 * (h * x) ** 2) / (1.0 + x * x)
    return total * end * jnp.exp(-0.5 * h * h) / (4 * math.pi)


def _by_h(y: Any, h: Any, a: Any) -> Any:
    return -jnp.exp(-0.5 * h * h) * lax.erf(a * h * math.sqrt(0.5)) / math.sqrt(8 * math.pi)


def _by_a(y: Any, h: Any, a: Any) -> Any:
    return jnp.exp(-0.5 * h * h * (1.0 + a * a)) / (2 * math.pi * (1.0 + a * a))


@special(_by_h, _by_a)
def owens_t(h: Any, a: Any) -> Any:
    """Owen's T function: how probable it is that X > h and 0 < Y < aX, for independent standard normal X and Y.

    >>> print(f"{owens_t(0.0, 1.0):.5f}")
    0.12500
    """
    size, slope = jnp.abs(h), jnp.abs(a)
    wide = slope > 1.0
    steep = jnp.where(wide, slope, 1.0)
    over = jnp.where(steep == jnp.inf, jnp.where(size == 0, 0.0, jnp.inf), size * steep)
    inner = _narrow(jnp.where(wide, jnp.minimum(over, 50.0), size), jnp.where(wide, 1.0 / steep, slope))
    p, q = (0.5 * lax.erfc(z * math.sqrt(0.5)) for z in (size, over))
    outer = 0.5 * (p + q) - p * q - inner
    return jnp.sign(a) * jnp.where(wide, outer, inner)
