"""Running logarithms of sums of complex exponentials."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
from polyax import lax

Z = np.array([[1 + 7j, 2, 3j], [0.5 - 9j, -1, 90 + 2j]], np.complex64)


@pytest.mark.parametrize("axis, reverse", [(0, False), (1, False), (1, True)])
def test_against_numpy(axis, reverse):
    got = lax.cumlogsumexp(Z, axis=axis, reverse=reverse)
    turned = np.flip(Z, axis) if reverse else Z
    want = np.log(np.cumsum(np.exp(turned.astype(np.complex128)), axis))
    np.testing.assert_allclose(got, np.flip(want, axis) if reverse else want, rtol=1e-5, atol=1e-5)


def test_nothing_overflows():
    assert lax.cumlogsumexp(Z * 100, axis=1)[1, 2].real == 9000


def test_derivatives_add_up_to_one():
    _, tangent = polyax.jvp(lambda z: lax.cumlogsumexp(z, axis=1), (Z,), (np.ones_like(Z),))
    np.testing.assert_allclose(tangent, np.ones_like(Z), rtol=1e-5, atol=1e-5)
