"""Special functions of several arguments, which are made of other primitives."""

from __future__ import annotations

import numpy as np

from polyax import lax
from polyax_conformance.specs.case import Case, case, values
from polyax_conformance.specs.primitives.data import SIGNED, X, Y

A = 3 * X + 0.2
WIDE = 9 * SIGNED

CASES: dict[str, Case] = {
    "igamma by its place": case(lambda x: lax.igamma(A, 2 * x), Y),
    "igammac by its place": case(lambda x: lax.igammac(A, 2 * x), Y),
    "igamma_grad_a": values(lax.igamma_grad_a, A, Y),
    "random_gamma_grad": values(lax.random_gamma_grad, A, Y),
    "betainc by its place": case(lambda x: lax.betainc(A, Y, x), 0.9 * X / np.max(X)),
    "betainc by its shapes": case(lambda a, b: lax.betainc(a, b, np.float64(0.4)), A, Y, again=()),
    "bessel_i0e": case(lax.bessel_i0e, WIDE),
    "bessel_i1e": case(lax.bessel_i1e, WIDE),
}
