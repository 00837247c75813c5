"""Fourier transforms on the cpu, by SciPy and without it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax_cpu.libraries import fourier

RNG = np.random.default_rng(0)
CASES = {
    "one": (jnp.fft.fft, np.fft.fft, (64,)),
    "many": (jnp.fft.ifft, np.fft.ifft, (40, 1, 512)),
    "real": (jnp.fft.rfft, lambda x: np.fft.rfft(x.real), (300, 60)),
    "back": (jnp.fft.irfft, np.fft.irfft, (300, 61)),
    "two dimensions": (jnp.fft.fft2, np.fft.fft2, (5, 128, 64)),
}


@pytest.mark.parametrize("scipy", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_numpy_in_double_precision(name: str, scipy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    fun, oracle, shape = CASES[name]
    x = (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(np.complex64)
    if not scipy:
        monkeypatch.setitem(sys.modules, "scipy.fft", None)
    used: list[str] = []
    for which in ("_plain", "_fast"):
        before = getattr(fourier, which)
        monkeypatch.setattr(fourier, which, lambda name, w=which, f=before: used.append(w) or f(name))
    with polyax.default_device("cpu"):
        got = polyax.jit(lambda x: fun(x.real if name == "real" else x))(x)
    want = oracle(x.astype(complex))
    np.testing.assert_allclose(got, want, 1e-4, 1e-4 * np.abs(want).max())
    large = np.prod(shape) >= fourier.PARALLEL_SIZE
    assert used == (["_plain"] if not large else ["_fast"] if scipy else ["_fast", "_plain"])
