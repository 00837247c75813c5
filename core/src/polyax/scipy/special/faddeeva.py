"""The Faddeeva function w(z) = exp(-z**2) erfc(-iz), and what is made of it: scaled error functions, Dawson, Fresnel.

w is an integral over the real line of exp(-t**2) / (z - t). With a step h = sqrt(pi / 12), twelve points of the
trapezoidal or of the midpoint rule give it to rounding, when the residue of the pole z is added: Al Azah and
Chandler-Wilde, "Computation of the complex error function using modified trapezoidal rules" (2021). Of both rules, the
one is taken whose points are far from z.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from polyax import numpy as jnp
from polyax.control.calls.custom_jvp import custom_jvp
from polyax.ir import dtypes
from polyax.ir.aval import aval_of
from polyax.lax import lenient as lax
from polyax.numpy.fused import fused
from polyax.numpy.promotion import promote_args_inexact
from polyax.scipy.special.define import horner, real_floats, special

__all__ = ["dawsn", "erfcx", "fresnel", "log_ndtr", "wofz"]

_POINTS = 12
_STEP = math.sqrt(math.pi / _POINTS)
_STRIP = math.pi / _STEP
_ROOT_PI = math.sqrt(math.pi)


def _quadrant(x: Any, y: Any) -> tuple[Any, Any]:
    """Real and imaginary part of w(x + iy) for x, y >= 0."""
    far = jnp.maximum(x, y) > 1e8
    u, v = _near(jnp.where(far, 1.0, x), jnp.where(far, 1.0, y))
    size = jnp.where(far, jnp.maximum(x, y), 1.0)  # there, w is i / (sqrt(pi) z)
    a, b = jnp.where(jnp.isinf(x), 1.0, x / size), jnp.where(jnp.isinf(y), 1.0, y / size)
    scale = 1.0 / (_ROOT_PI * size * (a * a + b * b))
    return jnp.where(far, scale * b, u), jnp.where(far, scale * a, v)


def _near(x: Any, y: Any) -> tuple[Any, Any]:
    place = x / _STEP - jnp.floor(x / _STEP)
    trapezoidal = (place > 0.25) & (place < 0.75)
    real, imaginary = _residue(x, y, trapezoidal)
    shift = jnp.where(trapezoidal, 0.0, 0.5).astype(x.dtype)
    for k in range(_POINTS):
        at_node, at_middle = (0.5 if k == 0 else math.exp(-((k * _STEP) ** 2))), math.exp(-(((k + 0.5) * _STEP) ** 2))
        weight = 2 * _STEP / math.pi * jnp.where(trapezoidal, at_node, at_middle).astype(x.dtype)
        point = (k + shift) * _STEP
        re, im = (x - point) * (x + point) - y * y, 2.0 * x * y  # z**2 - point**2
        weight = weight / (re * re + im * im)
        real, imaginary = real + weight * (x * im - y * re), imaginary + weight * (x * re + y * im)
    return real, imaginary


def _residue(x: Any, y: Any, trapezoidal: Any) -> tuple[Any, Any]:
    """2 exp(-z**2) / (1 - exp(-2 pi i z / h)), or with a plus; nothing beyond the strip where the pole counts."""
    inside = y < _STRIP
    y = jnp.where(inside, y, 0.0)
    sign = jnp.where(trapezoidal, -1.0, 1.0).astype(x.dtype)
    angle = 2.0 * _STRIP * x
    re, im = jnp.exp(-2.0 * _STRIP * y) + sign * jnp.cos(angle), -sign * jnp.sin(angle)
    scale = jnp.where(inside, 2.0, 0.0) * jnp.exp(y * (y - 2.0 * _STRIP) - x * x) / (re * re + im * im)
    c, s = jnp.cos(2.0 * x * y), jnp.sin(2.0 * x * y)
    return scale * (c * re - s * im), -scale * (s * re + c * im)


# --- functions -------------------------------------------------------------------------------------------------------


def wofz(z: Any) -> Any:
    """The Faddeeva function ``exp(-z**2) erfc(-iz)``, which is complex.

    >>> print(wofz(0.0).real)
    1.0
    """
    (z,) = promote_args_inexact("wofz", z)
    z = jnp.asarray(z)
    return _wofz(z if dtypes.is_complex(z.dtype) else z.astype(dtypes.wider(z.dtype, np.complex64)))


@fused
@custom_jvp
def _wofz(z: Any) -> Any:
    x, y = lax.real(z), lax.imag(z)
    u, v = _quadrant(jnp.abs(x), jnp.abs(y))
    below, v = y < 0, jnp.where((x < 0) ^ (y < 0), -v, v)
    safe = jnp.where(below, y, 0.0)
    growth = 2.0 * jnp.exp((safe - x) * (safe + x))
    mirrored = lax.complex(growth * jnp.cos(2.0 * x * safe) - u, -growth * jnp.sin(2.0 * x * safe) - v)
    return jnp.where(below, mirrored, lax.complex(u, v))


@_wofz.__wrapped__.defjvp
def _wofz_jvp(primals: Any, tangents: Any) -> Any:
    (z,), (t,) = primals, tangents
    w = _wofz(z)
    return w, t * (complex(0, 2 / _ROOT_PI) - 2.0 * z * w)


def erfcx(x: Any) -> Any:
    """``exp(x**2) erfc(x)``, which doesn't underflow; of real or complex arguments.

    >>> print(f"{erfcx(10.0):.5f}")
    0.05614
    """
    x = jnp.asarray(x)
    return wofz(x * 1j) if dtypes.is_complex(x.dtype) else _erfcx(lax.convert_element_type(x, x.dtype))


_ERFCX32 = (
    0.421612727, 0.321860766, 0.181565764, 0.0684998742, 0.0113430426, -0.00335355184, -0.0019199828, 0.000165985205,
    0.000264893797, -1.09939788e-5, -2.85302337e-5,
)  # fmt: skip
_ERFCX64 = (
    0.42161272812228716, 0.32186073977565934, 0.1815656466592397, 0.06850045809844183, 0.011344620052735284,
    -0.003357217721752419, -0.0019275142080910194, 0.00017568331819291641, 0.00028107747766680154,
    -2.3323211047603647e-5, -4.5041862465300599e-5, 7.8132842697508575e-6, 7.2974776050778434e-6,
    -2.7028175600595623e-6, -9.3220784823241849e-7, 7.8702260516010461e-7, -3.6415492718632212e-9,
    -1.8144408501036462e-7, 5.6679496321356984e-8, 2.9495543148052204e-8, -2.2140760468285097e-8,
    -2.5107510268799672e-9, 4.7998036217819189e-9, 9.3270337164160955e-13, -4.9856841838279322e-10,
)  # fmt: skip


def _slope_of_erfcx(y: Any, x: Any) -> Any:
    return 2.0 * x * y - 2.0 / _ROOT_PI


@special(_slope_of_erfcx)
def _tail(x: Any) -> Any:
    """``erfcx`` for x >= 0: t = 1 / (1 + 0.4 x) times a polynomial in 2 t - 1, a minimax fit to rounding."""
    coefficients = _ERFCX32 if x.dtype == np.float32 else _ERFCX64
    t = 1.0 / (1.0 + 0.4 * x)
    v = 2.0 * t - 1.0
    return t * horner(coefficients[::-1], v)


@special(_slope_of_erfcx)
def _erfcx(x: Any) -> Any:
    scaled = _tail(jnp.abs(x))
    return jnp.where(x < 0, 2.0 * jnp.exp(x * x) - scaled, scaled)


@special(lambda y, x: 1.0 - 2.0 * x * y)
def dawsn(x: Any) -> Any:
    """Dawson's integral, ``exp(-x**2)`` times the integral of ``exp(t**2)`` from 0 to ``x``.

    >>> print(f"{dawsn(1.0):.5f}")
    0.53808
    """
    return jnp.sign(x) * (0.5 * _ROOT_PI) * _quadrant(jnp.abs(x), jnp.zeros_like(x))[1]


def _phase(x: Any) -> Any:
    return 0.5 * math.pi * (x * x - 4.0 * jnp.floor(x * x / 4.0))


@special(lambda _, x: (jnp.sin(_phase(x)), jnp.cos(_phase(x))))
def _fresnel(x: Any) -> tuple[Any, Any]:
    """C + iS = (1 + i) / 2 erf(sqrt(pi) / 2 (1 - i) x); the series of DLMF 7.6.4 and 7.6.6 below 1.2."""
    size = jnp.abs(x)
    near, place = size < 1.2, jnp.minimum(size, 1e6) * (0.5 * _ROOT_PI)
    u, v = _quadrant(place, place)
    c, s = jnp.cos(_phase(jnp.minimum(size, 1e6))), jnp.sin(_phase(jnp.minimum(size, 1e6)))
    a, b = jnp.where(jnp.isinf(x), 0.0, c * u - s * v), jnp.where(jnp.isinf(x), 0.0, c * v + s * u)
    sine, cosine = _fresnel_series(jnp.where(near, size, 0.0))
    signs = jnp.sign(x)
    return signs * jnp.where(near, sine, 0.5 * (1 - a - b)), signs * jnp.where(near, cosine, 0.5 * (1 - a + b))


def _fresnel_series(x: Any) -> tuple[Any, Any]:
    q = (0.5 * math.pi * x * x) ** 2
    sine = cosine = jnp.zeros_like(x)
    for k in reversed(range(12)):
        sign = (-1) ** k
        sine = sine * q + sign / (math.factorial(2 * k + 1) * (4 * k + 3))
        cosine = cosine * q + sign / (math.factorial(2 * k) * (4 * k + 1))
    return 0.5 * math.pi * x * x * x * sine, x * cosine


def fresnel(x: Any) -> tuple[Any, Any]:
    """The Fresnel integrals: those of ``sin(pi t**2 / 2)`` and of ``cos(pi t**2 / 2)`` from 0 to ``x``.

    >>> s, c = fresnel(1.0)
    >>> print(f"{s:.5f} {c:.5f}")
    0.43826 0.77989

    Raises:
      NotImplementedError: ``x`` is complex.
    """
    if dtypes.is_complex(aval_of(x).dtype):
        raise NotImplementedError("Support for complex-valued inputs is not implemented yet.")
    return _fresnel(x)


_ROOT_HALF = math.sqrt(0.5)


def _scaled_and_gauss(x: Any) -> tuple[Any, Any]:
    """``2 ndtr(-|x|)`` as a product with ``exp(-x**2 / 2)``, which underflows."""
    return _tail(jnp.abs(x) * _ROOT_HALF), jnp.exp(-0.5 * x * x)


def _slope_of_log_ndtr(_: Any, x: Any) -> Any:
    """The density by the distribution function, above 0 both as multiples of ``exp(-x**2 / 2)``'s inverse."""
    low = x < 0
    scaled, gauss = _scaled_and_gauss(x)
    return math.sqrt(2 / math.pi) * jnp.where(low, 1.0, gauss) / jnp.where(low, scaled, 2.0 - scaled * gauss)


@special(_slope_of_log_ndtr)
def _log_ndtr(x: Any) -> Any:
    scaled, gauss = _scaled_and_gauss(x)
    return jnp.where(x < 0, jnp.log(0.5 * scaled) - 0.5 * x * x, jnp.log1p(-0.5 * scaled * gauss))


def log_ndtr(x: Any, series_order: int = 3) -> Any:
    """The logarithm of the distribution function of the standard normal distribution, accurate at both ends.

    Args:
      x: floats.
      series_order: checked, but without effect: no asymptotic series is needed here.

    Raises:
      TypeError: ``series_order`` is no integer, or ``x`` no float.
      ValueError: ``series_order`` is negative or above 30.

    >>> print(f"{log_ndtr(-30.0):.3f}")
    -454.321
    """
    if not isinstance(cast(Any, series_order), int):
        raise TypeError("series_order must be a Python integer.")
    if series_order < 0:
        raise ValueError("series_order must be non-negative.")
    if series_order > 30:
        raise ValueError("series_order must be <= 30.")
    return _log_ndtr(real_floats(x))
