"""Eigenvalues of Hermitian tridiagonal matrices by bisection: no matrix is made, and all are sought side by side.

As many eigenvalues lie below ``x`` as pivots of ``T - x`` are negative (Sylvester's law of inertia; Barth, Martin and
Wilkinson, Calculation of the eigenvalues of a symmetric tridiagonal matrix by the method of bisection, 1967).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.control.calls.custom_jvp import custom_jvp
from polyax.control.flow.looping import fori_loop, scan
from polyax.ir import dtypes
from polyax.lax import linalg as primitives
from polyax.numpy.fused import fused

TOGETHER = 8
"""Rows for which the pivots of a loop's turn are found."""
Part = tuple[int, int] | None
"""The first of the eigenvalues in order, and the one behind the last; None stands for all."""


def hermitian(d: Any, e: Any) -> Any:
    """The matrix with the diagonal ``d``, of which the real part counts, and ``e`` below it."""
    return jnp.diag(jnp.real(d)) + jnp.diag(e, -1) + jnp.diag(jnp.conj(e), 1)


@fused(static_argnames=("part",))
@partial(custom_jvp, nondiff_argnums=(0,))
def tridiagonal_eigenvalues(part: Part, d: Any, e: Any) -> Any:
    """Those of ``hermitian(d, e)`` in increasing order, each as exact as the largest is."""
    first, stop = part or (0, d.shape[0])
    dtype = d.real.dtype
    d, e = (x.astype(dtypes.wider(dtype, np.float32)) for x in (jnp.real(d), jnp.abs(e)))
    power = jnp.frexp(jnp.max(jnp.concatenate([jnp.abs(d), e])))[1]  # squares neither overflow nor vanish
    d, e = jnp.ldexp(d, -power), jnp.ldexp(e, -power)
    beside = jnp.pad(e, (1, 0)) + jnp.pad(e, (0, 1))
    bounds = jnp.min(d - beside), jnp.max(d + beside)  # Gershgorin's
    is_finite = jnp.isfinite(bounds[1] - bounds[0])
    squares, places = jnp.pad(e * e, (1, 0)), jnp.arange(first, stop)

    def halve(_: Any, ends: tuple[Any, Any]) -> tuple[Any, Any]:
        low, high = ends
        middle = low / 2 + high / 2
        above = _below(middle, d, squares) <= places
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    steps = dtypes.finfo(d.dtype).nmant + 3
    low, high = fori_loop(0, steps, halve, tuple([jnp.full(stop - first, x, d.dtype) for x in bounds]))
    return jnp.where(is_finite, jnp.ldexp(low / 2 + high / 2, power), np.nan).astype(dtype)


def _below(x: Any, d: Any, squares: Any) -> Any:
    """How many eigenvalues are less than each ``x``. A pivot of almost zero counts as negative."""
    least = dtypes.finfo(d.dtype).tiny

    def row(state: tuple[Any, Any], parts: tuple[Any, Any]) -> tuple[tuple[Any, Any], None]:
        pivot, count = state
        pivot = parts[0] - x - parts[1] / pivot
        negative = pivot <= least
        return (jnp.where(negative, jnp.minimum(pivot, -least), pivot), count + negative), None

    start = jnp.ones_like(x), jnp.zeros(x.shape, "int32")
    return scan(row, start, (d, squares), unroll=min(TOGETHER, d.shape[0]))[0][1]


@tridiagonal_eigenvalues.__wrapped__.defjvp
def _tridiagonal_eigenvalues_jvp(part: Part, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """Each changes by ``v^H T' v``, with its eigenvector ``v`` of length one."""
    (d, e), (dd, de) = primals, tangents
    v = primitives.eigh(hermitian(d, e), subset_by_index=part)[0]
    along = jnp.real(dd) @ jnp.real(v * jnp.conj(v))
    return tridiagonal_eigenvalues(part, d, e), along + 2 * jnp.real(de @ (jnp.conj(v[1:]) * v[:-1]))
