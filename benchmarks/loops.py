"""Loops of small steps and of linear algebra: ``CASES[name](module)`` is a function with its arguments.

Run beside another module in turns. Most loops have ``TURNS`` turns: their milliseconds are microseconds of a turn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

Case = tuple[Callable[..., Any], tuple[Any, ...]]
TURNS = 1000
LONG = 10_000


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _definite(n: int) -> np.ndarray:
    x = _random(n, n)
    return x @ x.T / n + np.eye(n, dtype=np.float32)


def _turns(m: Any, body: Callable[[Any], Any], start: Any) -> Case:
    """``TURNS`` times ``body`` of the carry."""
    loop = m.jit(lambda x: m.lax.fori_loop(0, TURNS, lambda _, c: body(c), x))
    return loop, (m.tree_util.tree_map(m.numpy.asarray, start),)


# --- linear algebra --------------------------------------------------------------------------------------------------


def _factors(m: Any, n: int) -> Case:
    """A factor of Cholesky and a triangular system, whose solution changes the matrix."""
    linalg = m.scipy.linalg

    def body(c: Any) -> Any:
        a, x = c
        x = linalg.solve_triangular(m.numpy.linalg.cholesky(a), x + 1.0, lower=True)
        return a + 1e-3 * m.numpy.outer(x, x), x

    return _turns(m, body, (_definite(n), _random(n)))


def _kalman(m: Any, n: int) -> Case:
    """A filter of ``n`` states and ``n // 2`` measurements, whose gains come from a factor of Cholesky."""
    jnp, linalg = m.numpy, m.scipy.linalg
    k = max(1, n // 2)
    f, h = (0.9 * np.eye(n) + 0.05 * _random(n, n) / n).astype(np.float32), _random(k, n)
    q, r = 0.1 * np.eye(n, dtype=np.float32), np.eye(k, dtype=np.float32)

    def step(c: Any, y: Any) -> Any:
        x, p = c
        x, p = f @ x, f @ p @ f.T + q
        s, e = h @ p @ h.T + r, y - h @ x
        factor = jnp.linalg.cholesky(s)
        gain = linalg.cho_solve((factor, True), h @ p).T
        return (x + gain @ e, p - gain @ h @ p), e @ linalg.cho_solve((factor, True), e)

    run = m.jit(lambda ys: m.lax.scan(step, (jnp.zeros(n), jnp.eye(n)), ys)[1].sum())
    return run, (jnp.asarray(_random(TURNS, k)),)


def _solve(m: Any, n: int) -> Case:
    a = m.numpy.asarray(_definite(n))
    return _turns(m, lambda x: m.numpy.linalg.solve(a + 0.1 * m.numpy.sin(x)[:, None], x + 1.0), _random(n))


def _inverse(m: Any, n: int) -> Case:
    return _turns(m, lambda a: 0.5 * (a + m.numpy.linalg.inv(a)), _definite(n))


def _determinant(m: Any, n: int) -> Case:
    a = m.numpy.asarray(_definite(n))
    return _turns(m, lambda x: m.numpy.linalg.slogdet(a + 0.1 * m.numpy.sin(x))[1], np.float32(0.0))


def _eigh(m: Any, n: int) -> Case:
    def body(a: Any) -> Any:
        w, v = m.numpy.linalg.eigh(a)
        return (v * m.numpy.sqrt(m.numpy.abs(w) + 1.0)) @ v.T

    return _turns(m, body, _definite(n))


def _qr(m: Any, n: int) -> Case:
    """The algorithm QR for eigenvalues."""

    def body(a: Any) -> Any:
        q, r = m.numpy.linalg.qr(a)
        return r @ q

    return _turns(m, body, _definite(n))


def _svd(m: Any, n: int) -> Case:
    def body(a: Any) -> Any:
        u, s, vt = m.numpy.linalg.svd(a, full_matrices=False)
        return (u * m.numpy.tanh(s)) @ vt + 0.1

    return _turns(m, body, _random(n, n))


def kalman_gradient(m: Any) -> Case:
    run, (ys,) = _kalman(m, 4)
    return m.jit(m.grad(run)), (ys,)


def batched_solve(m: Any) -> Case:
    """Thirty-two systems of four unknowns in a turn."""
    a = m.numpy.asarray(np.stack([_definite(4)] * 32))
    body = m.vmap(lambda a, x: m.numpy.linalg.solve(a + 0.1 * m.numpy.sin(x)[:, None], x + 1.0))
    return _turns(m, lambda x: body(a, x), _random(32, 4))


# --- small steps -----------------------------------------------------------------------------------------------------


def writes(m: Any) -> Case:
    """Ten thousand elements are set, one after the other."""
    body = lambda i, x: x.at[i].set(i * 0.5)
    return m.jit(lambda x: m.lax.fori_loop(0, LONG, body, x)), (m.numpy.zeros(LONG, m.numpy.float32),)


def recurrence(m: Any) -> Case:
    """A scalar carry, and an output in each of ten thousand turns."""
    step = lambda c, x: (0.9 * c + x, c)
    return m.jit(lambda xs: m.lax.scan(step, xs[0], xs)), (m.numpy.asarray(_random(LONG)),)


def complex_recurrence(m: Any) -> Case:
    z = m.numpy.asarray((_random(LONG) + 1j * _random(LONG)[::-1]).astype(np.complex64))
    return m.jit(lambda z: m.lax.scan(lambda c, x: (c * x * 0.5 + 1j, c), z[0], z)[1]), (z,)


def carries(m: Any) -> Case:
    """Sixty scalars that depend on each other."""

    def body(c: tuple[Any, ...], x: Any) -> tuple[tuple[Any, ...], None]:
        return tuple(0.9 * a + 0.1 * b * x for a, b in zip(c, c[1:] + c[:1], strict=True)), None

    def run(start: Any, xs: Any) -> Any:
        return m.lax.scan(body, tuple(start[k] for k in range(60)), xs)[0]

    return m.jit(run), (m.numpy.asarray(_random(60)), m.numpy.asarray(_random(TURNS)))


def branches(m: Any) -> Case:
    """Each turn takes one of two ways, and changes an element of an array."""

    def body(i: Any, c: Any) -> Any:
        x, s = c
        x = m.lax.cond(s > 0, lambda x: x.at[i % 64].add(1.0), lambda x: x.at[i % 32].mul(0.5), x)
        return x, m.numpy.sin(s + x[i % 16])

    run = m.jit(lambda x: m.lax.fori_loop(0, LONG, body, (x, m.numpy.float32(0.5))))
    return run, (m.numpy.asarray(_random(64)),)


def vectors(m: Any) -> Case:
    """Three bodies under gravity: a state of 18 numbers, and steps of a few small operations."""

    def body(c: Any) -> Any:
        x, v = c
        d = x[None] - x[:, None]
        a = (d / ((d**2).sum(-1) + 0.1)[..., None] ** 1.5).sum(1)
        v = v + 0.01 * a
        return x + 0.01 * v, v

    return _turns(m, body, (_random(3, 3), 0.1 * _random(3, 3)))


def newton(m: Any) -> Case:
    """A loop in a loop: roots by as many steps as they take."""

    def root(a: Any) -> Any:
        test = lambda x: m.numpy.abs(x * x - a) > 1e-4 * a
        return m.lax.while_loop(test, lambda x: 0.5 * (x + a / x), a)

    return m.jit(lambda xs: m.lax.map(root, xs)), (m.numpy.abs(m.numpy.asarray(_random(TURNS))) + 0.5,)


CASES: dict[str, Callable[[Any], Case]] = {
    **{f"factors {n}": partial(_factors, n=n) for n in (4, 16, 64)},
    **{f"kalman {n}": partial(_kalman, n=n) for n in (4, 16)},
    "kalman gradient 4": kalman_gradient,
    **{
        f"{f.__name__[1:]} {n}": partial(f, n=n)
        for f in (_solve, _inverse, _determinant, _eigh, _qr, _svd)
        for n in (4, 16)
    },
    **{
        f.__name__: f
        for f in (batched_solve, writes, recurrence, complex_recurrence, carries, branches, vectors, newton)
    },
}
