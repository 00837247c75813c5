"""The quantiles of the normal distribution, by M. J. Wichura, "Algorithm AS 241" (1988).

Three quotients of polynomials of degree 7, each with a relative error of about 1e-16: one for the middle, two for the
tails, as functions of the root of minus the logarithm of what the tail holds.
"""

from __future__ import annotations

import math
from typing import Any

from polyax import numpy as jnp
from polyax.scipy.special.define import horner, real_floats, special

__all__ = ["ndtri"]

# Coefficients of numerator and denominator, that of the highest power first.
_MIDDLE = (
    (
        2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
        13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608,
    ),
    (
        5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
        5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0,
    ),
)  # fmt: skip
_TAIL = (
    (
        7.7454501427834140764e-4, 0.0227238449892691845833, 0.241780725177450611770, 1.27045825245236838258,
        3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734,
    ),
    (
        1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.148103976427480074590,
        0.689767334985100004550, 1.67638483018380384940, 2.05319162663775882187, 1.0,
    ),
)  # fmt: skip
_FAR = (
    (
        2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 0.0265321895265761230930,
        0.296560571828504891230, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720,
    ),
    (
        2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
        0.0148753612908506148525, 0.136929880922735805310, 0.599832206555887937690, 1.0,
    ),
)  # fmt: skip


@special(lambda x, _: math.sqrt(2 * math.pi) * jnp.exp(0.5 * x * x))
def _ndtri(p: Any) -> Any:
    q = p - 0.5
    middle = q * _quotient(_MIDDLE, 0.180625 - q * q)
    tail = jnp.where(q > 0, 1.0 - p, p)
    root = jnp.sqrt(-jnp.log(jnp.where(tail > 0, tail, 1.0)))
    size = jnp.where(root > 5.0, _quotient(_FAR, root - 5.0), _quotient(_TAIL, root - 1.6))
    outside = jnp.where(tail == 0, math.inf, jnp.where(tail > 0, size, math.nan))
    return jnp.where(jnp.abs(q) <= 0.425, middle, jnp.where(q > 0, outside, -outside))


def _quotient(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: Any) -> Any:
    above, below = coefficients
    return horner(above, x) / horner(below, x)


def ndtri(p: Any) -> Any:
    """The inverse of ``ndtr``, accurate at both ends.

    Raises:
      TypeError: ``p`` isn't floating-point.

    >>> print(f"{ndtri(1e-30):.3f}")
    -11.464
    """
    return _ndtri(real_floats(p))
