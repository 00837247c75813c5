"""The Schur form by shifted QR steps on a Hessenberg matrix: Golub and Van Loan, "Matrix computations", 7.5."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polyax.ops.schur import schur_p
from polyax.reference.rules_linalg import householder_product, of_matrices
from polyax.reference.rules_reflections import each, from_left, from_right, hessenberg, reflection
from polyax.reference.table import rules

STEPS = 60
"""For each eigenvalue, after which the result is NaN."""


@rules(schur_p)
@of_matrices
def schur(x: Any, *, compute_schur_vectors: bool, **_: Any) -> Any:
    outs = each(_complex if x.dtype.kind == "c" else _real, x, [np.zeros_like(x), np.zeros_like(x)])
    return outs[: 1 + compute_schur_vectors]


def _reduced(a: Any) -> tuple[Any, Any]:
    """The Hessenberg form and its basis."""
    packed, taus = hessenberg(a)
    z = np.eye(len(a), dtype=a.dtype)
    if len(a) > 1:
        z[1:, 1:] = householder_product(packed[1:, :-1], taus)
    return np.triu(packed, -1), z


def _deflated(h: Any, last: int) -> int:
    """The first row of the block that ends at ``last``; what couples it to rows before is negligible, and cleared."""
    eps = np.finfo(h.dtype).eps
    for k in range(last, 0, -1):
        near = abs(h[k, k]) + abs(h[k - 1, k - 1])
        if abs(h[k, k - 1]) <= eps * (near or np.linalg.norm(h)):
            h[k, k - 1] = 0
            return k
    return 0


def _failed(h: Any, z: Any) -> tuple[Any, Any]:
    return np.full_like(h, np.nan), np.full_like(z, np.nan)


def _complex(a: Any) -> tuple[Any, Any]:
    if not np.isfinite(a).all():
        return _failed(a, a)
    h, z = _reduced(a)
    last, steps = len(a) - 1, 0
    while last > 0:
        first = _deflated(h, last)
        if first == last:
            last, steps = last - 1, 0
            continue
        if (steps := steps + 1) > STEPS:
            return _failed(h, z)
        block = slice(first, last + 1)
        shift = _shift(h[last - 1 : last + 1, last - 1 : last + 1], steps)
        q, _ = np.linalg.qr(h[block, block] - shift * np.eye(last + 1 - first, dtype=h.dtype))
        h[block, first:] = np.conj(q.T) @ h[block, first:]
        h[: last + 1, block] = h[: last + 1, block] @ q
        z[:, block] = z[:, block] @ q
        h[block, block] = np.triu(h[block, block], -1)
    return np.triu(h), z


def _shift(corner: Any, steps: int) -> Any:
    """The eigenvalue of the last corner that is nearer to its last element; now and then another number."""
    if steps % 10 == 0:
        return abs(corner[1, 0]) + abs(corner[1, 1])
    values = np.linalg.eigvals(corner)
    return values[np.argmin(abs(values - corner[1, 1]))]


def _real(a: Any) -> tuple[Any, Any]:
    if not np.isfinite(a).all():
        return _failed(a, a)
    h, z = _reduced(a)
    last, steps = len(a) - 1, 0
    while last > 0:
        first = _deflated(h, last)
        if first >= last - 1:
            if first == last - 1:
                _standardize(h, z, first)
            last, steps = first - 1, 0
            continue
        if (steps := steps + 1) > STEPS:
            return _failed(h, z)
        _francis(h, z, first, last, steps)
    return np.triu(h, -1), z


def _francis(h: Any, z: Any, first: int, last: int, steps: int) -> None:
    """Two steps with conjugate shifts in real arithmetic: a bulge is chased down the diagonal."""
    s, t = _double_shift(h, last, steps)
    (a, b), (c, d) = h[first : first + 2, first : first + 2]
    v = np.array([a * a + b * c - s * a + t, c * (a + d - s), c * h[first + 2, first + 1]])
    for k in range(first, last):
        rows = slice(k, min(k + 3, last + 1))
        _, u, tau = reflection(v[: rows.stop - k].astype(h.dtype))
        from_left(h[rows, max(k - 1, first) :], u, tau)
        from_right(h[: min(k + 4, last + 1), rows], u, tau)
        from_right(z[:, rows], u, tau)
        if k > first:
            h[k + 1 : rows.stop, k - 1] = 0
        v = h[k + 1 : k + 4, k].copy()


def _double_shift(h: Any, last: int, steps: int) -> tuple[Any, Any]:
    """Sum and product of both shifts."""
    (a, b), (c, d) = h[last - 1 : last + 1, last - 1 : last + 1]
    if steps % 10 == 0:
        size = abs(c) + abs(h[last - 1, last - 2])
        return 1.5 * size, size * size
    return a + d, a * d - b * c


def _standardize(h: Any, z: Any, k: int) -> None:
    """Turns a block of two rows such that it is triangular, or has equal diagonal elements."""
    (a, b), (c, d) = (map(float, row) for row in h[k : k + 2, k : k + 2])
    p = (a - d) / 2
    discriminant = p * p + b * c
    if discriminant >= 0:
        root = p + math.copysign(math.sqrt(discriminant), p)  # of both eigenvalues less d, the larger
        angle = math.atan2(c, root)
    else:
        angle = 0.5 * math.atan2(d - a, b + c)
        off = (b - c) / 2  # turning leaves it, and (b + c) / 2 becomes the root below with this angle
        angle += math.pi / 2 if off < 0 else 0.0  # the larger number goes above the diagonal
    cosine, sine = math.cos(angle), math.sin(angle)
    turn = np.array([[cosine, -sine], [sine, cosine]], h.dtype)
    h[k : k + 2, k:] = turn.T @ h[k : k + 2, k:]
    h[: k + 2, k : k + 2] = h[: k + 2, k : k + 2] @ turn
    z[:, k : k + 2] = z[:, k : k + 2] @ turn
    if discriminant >= 0:
        h[k + 1, k] = 0
