"""Loops and branches within plans: no value is lost where carries share memory, and none is copied in vain."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.numpy_backend import NumpyKernelBackend
from kernels.programs import compiled, launched, traced

import polyax.numpy as jnp
from polyax import lax
from polyax.reference.interpreter import evaluate
from polyax_kernels.host import backend as host


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each copy that is made."""
    sizes: list[int] = []
    copier = host._copier

    def counted(step):
        copy = copier(step)
        return lambda bases: (sizes.append(step.nbytes), copy(bases))[1]

    monkeypatch.setattr(host, "_copier", counted)
    return sizes


BIG = np.zeros((64, 100), np.float32)


def nested(x):
    return lax.fori_loop(0, 4, lambda j, c: lax.fori_loop(0, 4, lambda i, c: c.at[i + j].set(j + 1.0), c), x)


def updated_while(x):
    def body(c):
        return c[0] + 1, lax.dynamic_update_slice(c[1], jnp.ones((1, 100)), (c[0], 0))

    return lax.while_loop(lambda c: c[0] < 9, body, (0, x))[1]


def updated_beside_others(x):
    def body(c, i):
        a, b, s = c
        return (a.at[i].add(s), b.at[i, 2:5].multiply(2.0), s + a[i, 0]), a[i]

    return lax.scan(body, (x, x + 1, 0.5), np.arange(20, dtype=np.int32))[0][0]


IN_PLACE = {
    "set": lambda x: lax.fori_loop(0, 50, lambda i, c: c.at[i].set(1.0), x),
    "nested": nested,
    "while": updated_while,
    "beside": updated_beside_others,
    "elementwise": lambda x: lax.fori_loop(0, 50, lambda i, c: c * 0.5 + i, x),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_no_iteration_copies_what_is_carried(name: str, moved: list[int]) -> None:
    """One copy for each array, of what the caller still has, however many the iterations."""
    closed = traced(IN_PLACE[name], [BIG])
    backend = NumpyKernelBackend()
    (got, *_) = launched(backend, compiled(backend, closed), closed, [BIG])
    assert sum(n >= BIG.nbytes for n in moved) <= 1
    np.testing.assert_allclose(got, evaluate(closed.jaxpr, [*closed.consts, BIG])[0])


def test_donated_arrays_are_not_copied_at_all(moved: list[int]) -> None:
    closed = traced(nested, [BIG])
    backend = NumpyKernelBackend()
    launched(backend, compiled(backend, closed, (True,)), closed, [BIG])
    assert not any(n >= BIG.nbytes for n in moved)
